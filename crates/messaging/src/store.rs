//! The port to stored messages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault};

use crate::{
    AppendRequest, AppendSnapshot, AppendVerdict, Message, ReceiptRequest, ReceiptSnapshot,
    ReceiptVerdict, Side,
};

/// Decides a batch of sends inside the transaction. May run more than once.
pub type AppendDecision<'a> =
    &'a (dyn Fn(&AppendSnapshot, &[AppendRequest], &dyn IdSource) -> AppendVerdict + Send + Sync);

/// Decides a batch of reports inside the transaction. May run more than once.
pub type ReceiptDecision<'a> =
    &'a (dyn Fn(&ReceiptSnapshot, &[ReceiptRequest]) -> ReceiptVerdict + Send + Sync);

/// Which part of a session's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The first messages above a position.
    After(Seq),
    /// The last messages below a position.
    Before(Seq),
}

/// Stored messages (`cg_chat_message`).
///
/// # Contract
/// - `append` is one transaction over the whole batch, in a constant number of statements: it reads
///   sessions, earlier keys and uploads, runs `decide` and writes messages, tips and outbox rows.
///   What `decide` was shown holds until the commit, by locks taken in id order or by writing only
///   if nothing changed. What it returns is committed and flushed (A2).
/// - Unique `(session_id, seq)` and `(session_id, sender_type, sender_id, client_msg_id)` hold
///   whatever runs at once (T2).
/// - If one row of a batch cannot be stored, nothing of the batch is, and the error is `Internal`:
///   the caller splits the batch to find it.
/// - `record` is one transaction; a status never goes back, whatever runs at once. Of reports that
///   raise the same message at once one tells of the change.
/// - `history` is ascending by `seq` for both windows; `has_more` speaks of the window's direction.
/// - `list_undelivered` gives messages to `receiver` that are `pending` or `failed`, oldest first by
///   id: for a user over all their sessions, for an agent over the sessions owned now. With a
///   session, only of that one.
/// - `count_unread` counts, per session, the messages of the side opposite `reader` that are not
///   `read`; sessions without any are absent.
/// - `highest_id` is at least every id ever stored in any table, 0 if none (T3).
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written; after `Indeterminate`
/// repeating the same requests is a no-op for what was written.
#[async_trait]
pub trait MessageStore: Send + Sync {
    /// Stores a batch.
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault>;

    /// Records a batch of receipts.
    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault>;

    /// One message.
    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault>;

    /// A page of one session's history.
    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault>;

    /// What no device of `receiver` has acknowledged as delivered.
    async fn list_undelivered(
        &self,
        receiver: &Person,
        session: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault>;

    /// Unread messages per session.
    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault>;

    /// The floor for new ids.
    async fn highest_id(&self) -> Result<i64, StoreFault>;
}
