//! The order of the line and the port that reads it.

use std::cmp::Ordering;

use async_trait::async_trait;
use kefu_core::{SessionId, StoreFault};
use kefu_session::Session;

/// The front of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The first sessions, in order.
    pub sessions: Vec<Session>,
    /// How many wait in all.
    pub total: u32,
}

/// A waiting session's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1 is next.
    pub position: u32,
    /// How many wait in all.
    pub total: u32,
}

/// The order of the line (Q1, CC-15): priority descending, then session id ascending.
#[must_use]
pub fn ahead(left: &Session, right: &Session) -> Ordering {
    right.priority.cmp(&left.priority).then(left.id.cmp(&right.id))
}

/// Reads of the waiting line (`cg_chat_session where status = 0`).
///
/// # Contract
/// - `front` is ordered by [`ahead`]; `total` belongs to the same instant.
/// - `place` counts the sessions strictly ahead, plus one; `None` when the session does not wait.
///   The number equals the session's index in `front`, plus one.
///
/// # Errors
/// [`StoreFault::Unavailable`], or `Internal` for a row that cannot be read.
#[async_trait]
pub trait WaitingLine: Send + Sync {
    /// The first `limit` sessions, and how many wait in all.
    async fn front(&self, limit: u32) -> Result<Line, StoreFault>;

    /// Where `session` stands.
    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault>;
}
