//! [`AgentDirectory`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{AdminId, StoreFault, Timestamp};
use kefu_entities::agent::Entity;
use kefu_presence::{Agent, AgentDirectory};
use sea_orm::Value;

use crate::open::Database;
use crate::rows;

const BY_ID: &str = "SELECT * FROM cg_chat_agent WHERE admin_id = ?1";
const ONLINE: &str = "SELECT * FROM cg_chat_agent WHERE availability = 'online' ORDER BY admin_id";
const LIVE: &str = "SELECT * FROM cg_chat_agent WHERE live = 1 ORDER BY admin_id";
/// Z1: NULL sorts first, so an agent never assigned counts as unassigned longest.
const ELIGIBLE: &str = "SELECT * FROM cg_chat_agent \
     WHERE availability = 'online' AND live = 1 AND active_sessions < max_sessions \
     ORDER BY active_sessions, last_assigned, admin_id LIMIT ?1";
const GONE: &str = "SELECT * FROM cg_chat_agent \
     WHERE live = 0 AND gone_since < ?1 AND (availability = 'online' OR active_sessions > 0) \
     ORDER BY admin_id";

const AFTER: &str = "SELECT * FROM cg_chat_agent WHERE admin_id > ?1 ORDER BY admin_id LIMIT ?2";

/// Agents in SQLite.
pub(crate) struct SqliteAgentDirectory(pub(crate) Arc<Database>);

#[async_trait]
impl AgentDirectory for SqliteAgentDirectory {
    async fn find(&self, admin: &AdminId) -> Result<Option<Agent>, StoreFault> {
        Ok(self.list(BY_ID, Some(admin.as_str().into())).await?.pop())
    }

    async fn list_online(&self) -> Result<Vec<Agent>, StoreFault> {
        self.list(ONLINE, None).await
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        self.list(ELIGIBLE, Some(limit.into())).await
    }

    async fn list_live(&self) -> Result<Vec<Agent>, StoreFault> {
        self.list(LIVE, None).await
    }

    async fn list_gone(&self, before: Timestamp) -> Result<Vec<Agent>, StoreFault> {
        self.list(GONE, Some(before.0.into())).await
    }

    async fn list_after(
        &self,
        after: Option<&AdminId>,
        limit: u32,
    ) -> Result<Vec<Agent>, StoreFault> {
        // Every id is longer than the empty text, which therefore stands before all.
        let after = after.map_or("", AdminId::as_str);
        self.list(AFTER, [after.into(), limit.into()]).await
    }
}

impl SqliteAgentDirectory {
    async fn list(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value> + Send,
    ) -> Result<Vec<Agent>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0.readers, sql, values).await?)
    }
}
