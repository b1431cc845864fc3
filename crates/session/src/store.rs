//! The port to stored sessions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_core::{AdminId, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_events::Envelope;

use crate::{OpenVerdict, Refusal, Session};

/// Decides an opening inside the transaction. May run more than once.
pub type OpenDecision<'a> =
    &'a (dyn Fn(Option<&Session>, &dyn IdSource) -> OpenVerdict + Send + Sync);

/// Decides a change that touches no load. May run more than once.
pub type SessionDecision<'a> =
    &'a (dyn Fn(&Session, &dyn IdSource) -> SessionVerdict + Send + Sync);

/// What a change of one session writes.
#[derive(Debug, Clone)]
pub enum SessionVerdict {
    /// The new row and its events.
    Write(Session, Vec<Envelope>),
    /// Nothing.
    Keep,
    /// Nothing, and the caller is told why.
    Refuse(Refusal),
}

/// What opening led to.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The user's open session, as committed.
    pub session: Session,
    /// Whether this call created it.
    pub created: bool,
    /// Committed events, to be published.
    pub events: Vec<Envelope>,
}

/// What [`SessionStore::update`] led to.
#[derive(Debug, Clone)]
pub enum Updated {
    /// Committed: the new row and the events to be published.
    Written(Session, Vec<Envelope>),
    /// The decision kept the row as it is.
    Kept(Session),
    /// The decision refused.
    Refused(Refusal),
    /// No such session.
    Missing,
}

/// Stored sessions (`cg_chat_session`), except what changes a load.
///
/// # Contract
/// - One call is one transaction; what it returns is committed and flushed (A2).
/// - `open`: at most one session of a user is open, whatever runs at once, on any node (S1). The
///   decision sees the user's open session; concurrent calls for one user see each other's result.
/// - `update`: the row is locked while the decision runs; `version` and the events are written with
///   it. A decision may not change `status`, `admin_id`, `last_seq` or `last_msg_id` here.
/// - Reads return committed rows only. `list_open_after` is ordered by id.
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written; after `Indeterminate` the
/// caller repeats the call, which is harmless.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// The user's open session, or what `decide` inserts.
    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault>;

    /// Changes one session.
    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault>;

    /// One session.
    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault>;

    /// The user's waiting or active session.
    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault>;

    /// The user's latest ended session.
    async fn find_latest_ended(&self, user: &UserId) -> Result<Option<Session>, StoreFault>;

    /// Up to `limit` waiting or active sessions above `after`, all of them in pages (A1: what copies
    /// are rebuilt from).
    async fn list_open_after(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<Session>, StoreFault>;

    /// The agent's active sessions, by id.
    async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault>;

    /// The last position of each of `ids` that exists, in few statements (M5).
    async fn list_tips(&self, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, StoreFault>;
}
