//! [`WaitingLine`].

use async_trait::async_trait;
use kefu_core::{SessionId, StoreFault};
use kefu_queue::{Line, Place, WaitingLine};
use kefu_session::Status;

use crate::MemoryWorld;

#[async_trait]
impl WaitingLine for MemoryWorld {
    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        let tables = self.begin().await;
        let sessions = tables.sessions.line().take(limit as usize).cloned().collect();
        Ok(Line { sessions, total: number(tables.sessions.waiting()) })
    }

    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault> {
        let tables = self.begin().await;
        let waits = tables.sessions.find(session).filter(|s| s.status == Status::Waiting);
        Ok(waits.map(|waiting| Place {
            position: number(tables.sessions.ahead_of(waiting)).saturating_add(1),
            total: number(tables.sessions.waiting()),
        }))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
