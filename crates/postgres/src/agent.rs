//! [`AgentDirectory`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{AdminId, StoreFault, Timestamp};
use kefu_entities::agent::Entity;
use kefu_presence::{Agent, AgentDirectory};

use crate::open::Database;
use crate::rows::{self, Query, query};

const BY_ID: &str = "SELECT * FROM cg_chat_agent WHERE admin_id = $1";
const ONLINE: &str = "SELECT * FROM cg_chat_agent WHERE availability = 'online' ORDER BY admin_id";
const LIVE: &str = "SELECT * FROM cg_chat_agent WHERE live ORDER BY admin_id";
/// Z1: an agent never assigned counts as unassigned longest.
pub(crate) const ELIGIBLE: &str = "SELECT * FROM cg_chat_agent \
     WHERE availability = 'online' AND live AND active_sessions < max_sessions \
     ORDER BY active_sessions, last_assigned NULLS FIRST, admin_id LIMIT $1";
const GONE: &str = "SELECT * FROM cg_chat_agent \
     WHERE NOT live AND gone_since < $1 AND (availability = 'online' OR active_sessions > 0) \
     ORDER BY admin_id";
const AFTER: &str = "SELECT * FROM cg_chat_agent WHERE admin_id > $1 ORDER BY admin_id LIMIT $2";

/// Agents in PostgreSQL.
pub(crate) struct PgAgentDirectory(pub(crate) Arc<Database>);

#[async_trait]
impl AgentDirectory for PgAgentDirectory {
    async fn find(&self, admin: &AdminId) -> Result<Option<Agent>, StoreFault> {
        Ok(self.list(query(BY_ID).bind(admin.as_str())).await?.pop())
    }

    async fn list_online(&self) -> Result<Vec<Agent>, StoreFault> {
        self.list(query(ONLINE)).await
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        self.list(query(ELIGIBLE).bind(i64::from(limit))).await
    }

    async fn list_live(&self) -> Result<Vec<Agent>, StoreFault> {
        self.list(query(LIVE)).await
    }

    async fn list_gone(&self, before: Timestamp) -> Result<Vec<Agent>, StoreFault> {
        self.list(query(GONE).bind(before.0)).await
    }

    async fn list_after(
        &self,
        after: Option<&AdminId>,
        limit: u32,
    ) -> Result<Vec<Agent>, StoreFault> {
        // Every id is longer than the empty text, which therefore stands before all.
        let after = after.map_or("", AdminId::as_str);
        self.list(query(AFTER).bind(after).bind(i64::from(limit))).await
    }
}

impl PgAgentDirectory {
    async fn list(&self, query: Query<'_>) -> Result<Vec<Agent>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0, query).await?)
    }
}
