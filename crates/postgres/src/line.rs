//! [`WaitingLine`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{SessionId, StoreFault};
use kefu_entities::session::Entity;
use kefu_queue::{Line, Place, WaitingLine};
use sea_orm::sqlx::Row;

use crate::error::Failure;
use crate::open::Database;
use crate::rows::{column, domain, query};

/// One statement, so that the total belongs to the same instant as the rows.
const FRONT: &str = "SELECT s.*, (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0) AS total \
     FROM cg_chat_session AS s WHERE s.status = 0 ORDER BY s.priority DESC, s.id LIMIT $1";
/// Two ranges of the line's index: everybody of higher priority, and those of the same who came first.
const PLACE: &str = "SELECT \
     (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0 AND priority > s.priority) + \
     (SELECT COUNT(*) FROM cg_chat_session \
         WHERE status = 0 AND priority = s.priority AND id < s.id) + 1 AS position, \
     (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0) AS total \
     FROM cg_chat_session AS s WHERE s.id = $1 AND s.status = 0";

/// The waiting line in PostgreSQL.
pub(crate) struct PgWaitingLine(pub(crate) Arc<Database>);

#[async_trait]
impl WaitingLine for PgWaitingLine {
    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        Ok(self.read_front(limit).await?)
    }

    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault> {
        Ok(self.read_place(session).await?)
    }
}

impl PgWaitingLine {
    async fn read_front(&self, limit: u32) -> Result<Line, Failure> {
        // At least one row, since the total comes with the rows.
        let mut rows = self.0.read(query(FRONT).bind(i64::from(limit.max(1)))).await?;
        let total: i64 = rows.first().map(|row| row.try_get("total")).transpose()?.unwrap_or(0);
        rows.truncate(limit as usize);
        Ok(Line { sessions: domain::<Entity, _>(rows)?, total: count(total) })
    }

    async fn read_place(&self, session: SessionId) -> Result<Option<Place>, Failure> {
        let rows = self.0.read(query(PLACE).bind(session.get())).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (position, total): (i64, i64) = (column(row, 0)?, column(row, 1)?);
        Ok(Some(Place { position: count(position), total: count(total) }))
    }
}

fn count(counted: i64) -> u32 {
    u32::try_from(counted).unwrap_or(u32::MAX)
}
