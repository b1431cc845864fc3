//! [`Outbox`].

use async_trait::async_trait;
use kefu_core::{EventId, StoreFault, Timestamp};
use kefu_events::{Envelope, Event, Outbox};

use crate::MemoryWorld;

#[async_trait]
impl Outbox for MemoryWorld {
    async fn list_unconfirmed(
        &self,
        before: Timestamp,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreFault> {
        let tables = self.begin().await;
        let old = tables.outbox.unconfirmed(after).filter(|envelope| envelope.time < before);
        Ok(old.take(limit as usize).cloned().collect())
    }

    async fn count_unconfirmed(&self, limit: u32) -> Result<u32, StoreFault> {
        let count = self.begin().await.outbox.unconfirmed(None).take(limit as usize).count();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    async fn list_changes(&self, after: i64, limit: u32) -> Result<Vec<Envelope>, StoreFault> {
        let tables = self.begin().await;
        let change = |envelope: &&Envelope| !matches!(envelope.event, Event::MessageStored { .. });
        Ok(tables.outbox.above(after).filter(change).take(limit as usize).cloned().collect())
    }

    async fn confirm(&self, ids: &[EventId], now: Timestamp) -> Result<(), StoreFault> {
        let mut tables = self.begin().await;
        for id in ids {
            tables.outbox.confirm(*id, now);
        }
        Ok(())
    }

    async fn trim(&self, confirmed_before: Timestamp, limit: u32) -> Result<u64, StoreFault> {
        let mut tables = self.begin().await;
        let trimmed = (0..limit).take_while(|_| tables.outbox.trim_one(confirmed_before)).count();
        Ok(trimmed as u64)
    }
}
