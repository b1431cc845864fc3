//! Private notes about a session: the rule for adding one, and the port to stored ones.

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{
    AdminId, AgentInfo, Caller, ClientMsgId, ConnId, IdSource, NoteId, Page, PageLimit, SessionId,
    StoreFault, Timestamp,
};
use kefu_events::{Envelope, Event, EventContext};
use kefu_session::{Access, Refusal, Session, access};

/// A private note (`cg_chat_note`). Only agents and supervisors ever get one (B95).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The note; larger ones of a session are later.
    pub id: NoteId,
    /// What it is about.
    pub session_id: SessionId,
    /// Who wrote it.
    pub admin_id: AdminId,
    /// The author's display name at that time.
    pub name: String,
    /// The author's own key, if they gave one: repeating it is harmless.
    pub key: Option<ClientMsgId>,
    /// 1 … 500 scalar values.
    pub content: String,
    /// When it was written.
    pub time: Timestamp,
}

/// A note on its way to be stored. Its text was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRequest {
    /// What it is about.
    pub session_id: SessionId,
    /// What it says.
    pub content: String,
    /// The author's key.
    pub key: Option<ClientMsgId>,
    /// The connection it came on, which is answered instead of told.
    pub origin: Option<ConnId>,
}

/// A note that was just stored, attached to its event for local handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshNote {
    /// The note.
    pub note: Arc<Note>,
    /// The connection it came on.
    pub origin: Option<ConnId>,
}

/// What the store knows of a session when a note is added, read after the session was locked.
#[derive(Debug, Clone, Default)]
pub struct NoteSnapshot {
    /// The session.
    pub session: Option<Session>,
    /// The open session of its user.
    pub users_open: Option<Session>,
    /// The author's earlier note with the same key.
    pub earlier: Option<Note>,
    /// The session's last note.
    pub last: Option<NoteId>,
}

/// What adding a note leads to.
#[derive(Debug, Clone)]
pub enum NoteVerdict {
    /// Store it, with its event.
    Store(Note, Envelope),
    /// It was stored before, under this key.
    Repeat(Note),
    /// Nothing is written, and the author is told why.
    Refuse(Refusal),
}

/// Whether `author` may add a note, and the note (A3).
///
/// Users never may. Agents may where they may read the session, supervisors everywhere, also after the end. The key
/// is looked at first: who repeats a stored note gets it, whatever became of the session (as T2 has it for messages).
#[must_use]
pub fn decide_note(
    snapshot: &NoteSnapshot,
    author: &Caller,
    request: &NoteRequest,
    context: &EventContext,
    ids: &dyn IdSource,
) -> NoteVerdict {
    let (Caller::Agent(info) | Caller::Supervisor(info)) = author else {
        return NoteVerdict::Refuse(Refusal::Forbidden);
    };
    match &snapshot.earlier {
        Some(earlier) if earlier.content == request.content => {
            return NoteVerdict::Repeat(earlier.clone());
        }
        Some(_) => return NoteVerdict::Refuse(Refusal::Conflict),
        None => {}
    }
    let Some(session) = &snapshot.session else {
        return NoteVerdict::Refuse(Refusal::NotFound);
    };
    let owns_open =
        snapshot.users_open.as_ref().is_some_and(|open| open.is_owned_by(&info.admin_id));
    match access(session, author, Access::Read, owns_open) {
        Ok(()) => stored(snapshot, info, request, context, ids),
        Err(refusal) => NoteVerdict::Refuse(refusal),
    }
}

fn stored(
    snapshot: &NoteSnapshot,
    author: &AgentInfo,
    request: &NoteRequest,
    context: &EventContext,
    ids: &dyn IdSource,
) -> NoteVerdict {
    let note = Note {
        // Above the last one, so that the order of ids is that of the session on every node.
        id: NoteId::next_after(ids, snapshot.last.map_or(0, NoteId::get)),
        session_id: request.session_id,
        admin_id: author.admin_id.clone(),
        name: author.name.clone(),
        key: request.key.clone(),
        content: request.content.clone(),
        time: context.now,
    };
    let event = Event::NoteAdded {
        session_id: note.session_id,
        note_id: note.id,
        admin_id: note.admin_id.clone(),
    };
    let fresh = FreshNote { note: Arc::new(note.clone()), origin: request.origin };
    let envelope = Envelope::new(event, context, ids).with_attachment(Arc::new(fresh));
    NoteVerdict::Store(note, envelope)
}

/// Decides a note inside the transaction. May run more than once.
pub type NoteDecision<'a> = &'a (dyn Fn(&NoteSnapshot, &dyn IdSource) -> NoteVerdict + Send + Sync);

/// Stored notes (`cg_chat_note`).
///
/// # Contract
/// - One call is one transaction; what it returns is committed and flushed (A2).
/// - `add` locks the session, reads the snapshot for `author` and the request's key, and writes a
///   [`NoteVerdict::Store`] with its event. Of many at once with one key, one is stored and the others see it.
/// - `list` gives a session's last notes below `before`, ascending by id.
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written; after `Indeterminate` a caller with a key
/// repeats the call.
#[async_trait]
pub trait NoteStore: Send + Sync {
    /// Adds a note by `author`.
    async fn add(
        &self,
        author: &AdminId,
        request: &NoteRequest,
        decide: NoteDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<NoteVerdict, StoreFault>;

    /// One note.
    async fn find(&self, id: NoteId) -> Result<Option<Note>, StoreFault>;

    /// A session's last notes below `before`; without it the latest.
    async fn list(
        &self,
        session: SessionId,
        before: Option<NoteId>,
        limit: PageLimit,
    ) -> Result<Page<Note>, StoreFault>;
}
