//! The port to the rows that were written with the events' own transactions.

use async_trait::async_trait;
use kefu_core::{EventId, StoreFault, Timestamp};

use crate::Envelope;

/// Committed events that not every durable handler has dealt with yet (`cg_chat_outbox`).
///
/// # Contract
/// - A row exists if and only if the transaction that made the event true committed. Other ports
///   write the rows; this one reads, confirms and trims.
/// - `list_unconfirmed` gives rows in id order and never the same row twice in one answer.
/// - `confirm` is idempotent; unknown ids are ignored.
/// - `list_changes` gives the events other than stored messages, confirmed or not, in id order.
/// - `trim` removes confirmed rows only.
///
/// # Errors
/// [`StoreFault`]: `Unavailable` means nothing was changed.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Up to `limit` unconfirmed rows with `time < before`, above `after`, in id order.
    async fn list_unconfirmed(
        &self,
        before: Timestamp,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreFault>;

    /// How many unconfirmed rows there are, counted up to `limit`.
    async fn count_unconfirmed(&self, limit: u32) -> Result<u32, StoreFault>;

    /// Up to `limit` rows above `after` that are not `message_stored`: what a node reads again that may
    /// have missed some (N4). Messages are found by their sessions' positions instead (M5).
    async fn list_changes(&self, after: i64, limit: u32) -> Result<Vec<Envelope>, StoreFault>;

    /// Marks rows as handled.
    async fn confirm(&self, ids: &[EventId], now: Timestamp) -> Result<(), StoreFault>;

    /// Deletes up to `limit` rows confirmed before `confirmed_before`; says how many.
    async fn trim(&self, confirmed_before: Timestamp, limit: u32) -> Result<u64, StoreFault>;
}
