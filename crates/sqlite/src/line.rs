//! [`WaitingLine`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{SessionId, StoreFault};
use kefu_entities::session::Model;
use kefu_queue::{Line, Place, WaitingLine};
use kefu_session::Session;
use sea_orm::{ConnectionTrait, FromQueryResult};

use crate::error::Failure;
use crate::open::Database;
use crate::rows::statement;

/// One statement, so that the total belongs to the same instant as the rows.
const FRONT: &str = "SELECT (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0) AS total, s.* \
     FROM cg_chat_session AS s WHERE s.status = 0 ORDER BY s.priority DESC, s.id LIMIT ?1";
/// Two ranges of the line's index: everybody of higher priority, and those of the same who came first.
const PLACE: &str = "SELECT \
     (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0 AND priority > s.priority) + \
     (SELECT COUNT(*) FROM cg_chat_session \
         WHERE status = 0 AND priority = s.priority AND id < s.id) + 1 AS position, \
     (SELECT COUNT(*) FROM cg_chat_session WHERE status = 0) AS total \
     FROM cg_chat_session AS s WHERE s.id = ?1 AND s.status = 0";

/// The waiting line in SQLite.
pub(crate) struct SqliteWaitingLine(pub(crate) Arc<Database>);

#[async_trait]
impl WaitingLine for SqliteWaitingLine {
    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        Ok(self.read_front(limit).await?)
    }

    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault> {
        Ok(self.read_place(session).await?)
    }
}

impl SqliteWaitingLine {
    async fn read_front(&self, limit: u32) -> Result<Line, Failure> {
        // At least one row, since the total comes with the rows.
        let rows = statement(FRONT, [limit.max(1).into()]);
        let rows = self.0.readers.query_all_raw(rows).await?;
        let total: i64 = rows.first().map(|row| row.try_get("", "total")).transpose()?.unwrap_or(0);
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows.iter().take(limit as usize) {
            sessions.push(Session::try_from(Model::from_query_result(row, "")?)?);
        }
        Ok(Line { sessions, total: count(total) })
    }

    async fn read_place(&self, session: SessionId) -> Result<Option<Place>, Failure> {
        let row = self.0.readers.query_one_raw(statement(PLACE, [session.get().into()])).await?;
        let Some(row) = row else { return Ok(None) };
        let (position, total): (i64, i64) = row.try_get_many_by_index()?;
        Ok(Some(Place { position: count(position), total: count(total) }))
    }
}

fn count(counted: i64) -> u32 {
    u32::try_from(counted).unwrap_or(u32::MAX)
}
