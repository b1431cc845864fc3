//! What an operator may tune; the defaults are the limits of `kefu_core::limit`.

use std::time::Duration;

use kefu_core::limit;
use kefu_messaging::{BatchConfig, RetrySchedule};

/// Settings of a desk. Keys are those of `protocol.md`, "Running it".
#[derive(Debug, Clone)]
pub struct DeskConfig {
    /// `presence.ttl_ms`.
    pub presence_ttl: Duration,
    /// `presence.agent_grace_ms`; zero is off.
    pub agent_grace: Duration,
    /// `delivery.retry_ms`.
    pub retries: RetrySchedule,
    /// `messaging.max_chars`.
    pub max_chars: usize,
    /// `messaging.resume_page`, 1 … 50.
    pub resume_page: u32,
    /// `assignment.max_sessions`.
    pub max_sessions: u32,
    /// `assignment.lock_ms`.
    pub assign_lock: Duration,
    /// `queue.ageing_per_minute`.
    pub ageing_per_minute: i64,
    /// `limits.connections_per_person`.
    pub connections_per_person: usize,
    /// `outbox.keep_hours`: how long confirmed events stay for other systems to read (N2).
    pub outbox_keep: Duration,
    /// The writers of messages and receipts.
    pub batch: BatchConfig,
}

impl Default for DeskConfig {
    fn default() -> Self {
        Self {
            presence_ttl: limit::PRESENCE_TTL,
            agent_grace: limit::AGENT_GRACE,
            retries: RetrySchedule::default(),
            max_chars: limit::MAX_MESSAGE_CHARS,
            resume_page: limit::PAGE,
            max_sessions: limit::MAX_SESSIONS_PER_AGENT,
            assign_lock: limit::ASSIGN_LOCK,
            ageing_per_minute: 0,
            connections_per_person: limit::CONNECTIONS_PER_PERSON,
            outbox_keep: limit::OUTBOX_KEEP,
            batch: BatchConfig::default(),
        }
    }
}
