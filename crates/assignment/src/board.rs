//! The port to copies of what routing decided: who owns what, who is loaded how, who waits (A1).

use async_trait::async_trait;
use kefu_core::{AdminId, SessionId, StoreFault, UserId};
use kefu_presence::Agent;
use kefu_session::{Session, Status};

/// What copies say of one session's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCopy {
    /// The session.
    pub session_id: SessionId,
    /// The row's version: of two copies the larger one holds.
    pub version: i64,
    /// Whose it is.
    pub user_id: UserId,
    /// Waiting, active or ended.
    pub status: Status,
    /// The owner while it is active.
    pub admin_id: Option<AdminId>,
    /// What the line goes by (Q1).
    pub priority: i64,
}

impl From<&Session> for SessionCopy {
    fn from(session: &Session) -> Self {
        Self {
            session_id: session.id,
            version: session.version,
            user_id: session.user.user_id.clone(),
            status: session.status,
            admin_id: session.admin_id.clone().filter(|_| session.status == Status::Active),
            priority: session.priority,
        }
    }
}

/// What copies say of one agent's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadCopy {
    /// The agent.
    pub admin_id: AdminId,
    /// The row's version: of two copies the larger one holds.
    pub version: i64,
    /// Active sessions.
    pub load: u32,
}

impl From<&Agent> for LoadCopy {
    fn from(agent: &Agent) -> Self {
        Self {
            admin_id: agent.info.admin_id.clone(),
            version: agent.version,
            load: agent.active_sessions,
        }
    }
}

/// Some of the sessions that the board holds as open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoardPage {
    /// In no order; a session may come twice.
    pub sessions: Vec<SessionId>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// Copies of loads, owners, open sessions and the waiting line (`cs:agent:load:{adminId}`,
/// `cs:session:owner:{sessionId}`, `cs:user:active_session:{userId}`, `cs:queue:pending`), for systems
/// that look without asking SQL. No decision of this house reads them.
///
/// # Contract
/// - `apply` writes a copy only over an older version of the same row, so that repeating it, mixing up
///   the order, and rebuilding under load all end at the newest row (A1). What one row says is applied
///   as one step.
/// - An ended session has no owner, is nobody's open session and does not wait; a waiting one has no
///   owner.
/// - `line` is in the order of [`kefu_queue::ahead`].
/// - `list_open` names, page after page, every session that was on the board throughout.
///
/// # Errors
/// [`StoreFault`]: any part may have been applied; applying again is harmless.
#[async_trait]
pub trait LoadBoard: Send + Sync {
    /// Brings copies up to these rows.
    async fn apply(&self, sessions: &[SessionCopy], agents: &[LoadCopy]) -> Result<(), StoreFault>;

    /// Who owns an active session.
    async fn find_owner(&self, session: SessionId) -> Result<Option<AdminId>, StoreFault>;

    /// The user's waiting or active session.
    async fn find_active_session(&self, user: &UserId) -> Result<Option<SessionId>, StoreFault>;

    /// How many sessions an agent has.
    async fn find_load(&self, admin: &AdminId) -> Result<Option<u32>, StoreFault>;

    /// The first `limit` waiting sessions.
    async fn line(&self, limit: u32) -> Result<Vec<SessionId>, StoreFault>;

    /// The sessions held as open, from `cursor` on.
    async fn list_open(&self, cursor: Option<u64>) -> Result<BoardPage, StoreFault>;
}
