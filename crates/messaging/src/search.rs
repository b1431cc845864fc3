//! Sessions in lists: whose they are, what was said in them, and the port that keeps the index of it.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use kefu_core::{AdminId, Page, PageLimit, Seq, SessionId, StoreFault, Timestamp, UserId};
use kefu_session::Session;

use crate::{Message, MessageType, SearchQuery, words};

/// Messages in one entry of the index. An entry is written anew as a whole, so it must stay small; what is searched
/// for must occur within one.
const ENTRY: i64 = 100;

/// Whose sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A user's.
    User(UserId),
    /// A user's, but only those that this agent has or had at the end.
    UserWith(UserId, AdminId),
    /// Those that an agent has or had at the end.
    Agent(AdminId),
    /// Everybody's.
    All,
}

/// Which sessions a list names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFilter {
    /// Whose.
    pub whose: Whose,
    /// What was said in them, or who the user is.
    pub query: Option<SearchQuery>,
}

/// A session of which not everything is in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unindexed {
    /// The session.
    pub session: Session,
    /// Up to where it is.
    pub upto: Seq,
}

/// The words of a hundred positions of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEntry {
    /// The session.
    pub session_id: SessionId,
    /// Which hundred, from 0.
    pub part: i64,
    /// Its words.
    pub words: BTreeSet<String>,
}

/// How far a session is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The session.
    pub session_id: SessionId,
    /// Everything up to here is.
    pub upto: Seq,
    /// Nothing will follow.
    pub is_final: bool,
    /// When it was looked at.
    pub at: Timestamp,
}

impl Unindexed {
    /// The position behind which reading begins: that of the first entry to be written anew.
    #[must_use]
    pub const fn after(&self) -> Seq {
        Seq(self.upto.0 / ENTRY * ENTRY)
    }

    /// What to write once `messages`, contiguous above [`Self::after`], were read.
    #[must_use]
    pub fn index(&self, messages: &[Message], now: Timestamp) -> (Vec<SearchEntry>, Progress) {
        let upto = messages.last().map_or(self.after(), |message| message.seq).max(self.upto);
        let mut parts: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        if self.after() == Seq(0) {
            // Who the user is belongs to the first hundred.
            let user = &self.session.user;
            parts.insert(0, &words(&user.name) | &words(user.user_id.as_str()));
        }
        for message in messages {
            let part = parts.entry((message.seq.0 - 1) / ENTRY).or_default();
            match message.msg_type {
                MessageType::Text => part.extend(words(&message.content)),
                MessageType::Image => {}
            }
        }
        let session_id = self.session.id;
        let entry = |(part, words)| SearchEntry { session_id, part, words };
        let is_final = !self.session.is_open() && upto >= self.session.last_seq;
        let progress = Progress { session_id, upto, is_final, at: now };
        (parts.into_iter().map(entry).collect(), progress)
    }
}

/// A session among those opened lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedSession {
    /// The session.
    pub session_id: SessionId,
    /// When it was opened.
    pub at: Timestamp,
    /// When an agent first wrote in it.
    pub first_reply: Option<Timestamp>,
}

/// Sessions in lists, and the index of what was said in them (`cg_chat_indexed`, `cg_chat_term`).
///
/// # Contract
/// - One call is one transaction.
/// - `list` gives the sessions below `before`, the newest (largest id) first. A query fits a session if one of its
///   entries fits it.
/// - `list_last` gives the last message of each of `ids` that has one.
/// - `list_opened` gives every session opened at `since` or later, by id.
/// - `list_behind` gives sessions, by id, that ended and are not final in the index, or have messages above what
///   is and were not looked at since `looked_before`. A new session is there with everything missing, however it came
///   into its table.
/// - `write` replaces the entries of sessions whose progress is accepted: it never goes back, and a final one stays
///   as it is. Of two that write at once the further one holds, whatever their order.
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written; after `Indeterminate` it is found by
/// `list_behind` again or not.
#[async_trait]
pub trait SessionSearch: Send + Sync {
    /// A page of sessions.
    async fn list(
        &self,
        filter: &SessionFilter,
        before: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Session>, StoreFault>;

    /// The last messages of sessions.
    async fn list_last(
        &self,
        ids: &[SessionId],
    ) -> Result<BTreeMap<SessionId, Message>, StoreFault>;

    /// Sessions opened lately.
    async fn list_opened(&self, since: Timestamp) -> Result<Vec<OpenedSession>, StoreFault>;

    /// What the index lacks.
    async fn list_behind(
        &self,
        looked_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Unindexed>, StoreFault>;

    /// Writes entries and progress.
    async fn write(&self, entries: &[SearchEntry], progress: &[Progress])
    -> Result<(), StoreFault>;
}
