//! Canned replies: whose they are, the rules for changing them, and the port to stored ones.

use async_trait::async_trait;
use kefu_core::limit::{MAX_CANNED, MAX_SHORTCUT_CHARS};
use kefu_core::{AdminId, Caller, CannedId, IdSource, StoreFault, Timestamp};
use kefu_session::Refusal;

/// Whose replies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shelf {
    /// One agent's own; nobody else sees them.
    Own(AdminId),
    /// The team's: every agent sees them, supervisors write them.
    Team,
}

/// A text that is said often (`cg_chat_canned`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannedReply {
    /// The reply.
    pub id: CannedId,
    /// Whose it is.
    pub shelf: Shelf,
    /// What is typed to find it; once on its shelf.
    pub shortcut: String,
    /// For people; may be empty.
    pub title: String,
    /// 1 … 500 scalar values. Placeholders in it are the console's affair.
    pub content: String,
    /// When it was last changed.
    pub update_time: Timestamp,
}

/// A reply as its writer wants it. Its texts were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannedRequest {
    /// The one to be replaced; a new one without it.
    pub id: Option<CannedId>,
    /// See [`check_shortcut`].
    pub shortcut: String,
    /// At most 128 scalar values.
    pub title: String,
    /// 1 … 500 scalar values.
    pub content: String,
}

/// What a change of a shelf leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannedVerdict {
    /// Insert it, or replace the one with its id.
    Write(CannedReply),
    /// It is there already, just so.
    Keep(CannedReply),
    /// Delete it.
    Remove(CannedId),
    /// Nothing is written, and the writer is told why.
    Refuse(Refusal),
}

/// The shelf that `caller` writes: agents their own, supervisors the team's.
///
/// # Errors
/// [`Refusal::Forbidden`] for users.
pub fn own_shelf(caller: &Caller) -> Result<Shelf, Refusal> {
    match caller {
        Caller::User(_) => Err(Refusal::Forbidden),
        Caller::Agent(info) => Ok(Shelf::Own(info.admin_id.clone())),
        Caller::Supervisor(_) => Ok(Shelf::Team),
    }
}

/// Whether `shortcut` can be typed after a `/`: 1 … 32 scalar values without white space, control characters or a
/// `/` in front.
#[must_use]
pub fn check_shortcut(shortcut: &str) -> bool {
    let length = shortcut.chars().take(MAX_SHORTCUT_CHARS + 1).count();
    let unfit = |c: char| c.is_whitespace() || c.is_control();
    (1..=MAX_SHORTCUT_CHARS).contains(&length)
        && !shortcut.starts_with('/')
        && !shortcut.contains(unfit)
}

/// Writes `request` on `shelf`, whose replies are `present`.
///
/// A shortcut is used once on its shelf. The very same reply again, without an id, is the one that is there: who
/// repeats a request whose answer was lost gets that answer.
#[must_use]
pub fn decide_put(
    present: &[CannedReply],
    shelf: &Shelf,
    request: &CannedRequest,
    now: Timestamp,
    ids: &dyn IdSource,
) -> CannedVerdict {
    let taken = present.iter().find(|reply| reply.shortcut == request.shortcut);
    let id = match (request.id, taken) {
        (Some(id), _) if present.iter().all(|reply| reply.id != id) => {
            return CannedVerdict::Refuse(Refusal::NotFound);
        }
        (Some(id), Some(other)) if other.id != id => {
            return CannedVerdict::Refuse(Refusal::Conflict);
        }
        (Some(id), _) => id,
        (None, Some(same)) if same.title == request.title && same.content == request.content => {
            return CannedVerdict::Keep(same.clone());
        }
        (None, Some(_)) => return CannedVerdict::Refuse(Refusal::Conflict),
        (None, None) if present.len() >= MAX_CANNED => {
            return CannedVerdict::Refuse(Refusal::BadRequest("there are 100 replies already"));
        }
        (None, None) => CannedId::next_after(ids, 0),
    };
    CannedVerdict::Write(CannedReply {
        id,
        shelf: shelf.clone(),
        shortcut: request.shortcut.clone(),
        title: request.title.clone(),
        content: request.content.clone(),
        update_time: now,
    })
}

/// Deletes a reply of the shelf whose replies are `present`.
#[must_use]
pub fn decide_delete(present: &[CannedReply], id: CannedId) -> CannedVerdict {
    match present.iter().any(|reply| reply.id == id) {
        true => CannedVerdict::Remove(id),
        false => CannedVerdict::Refuse(Refusal::NotFound),
    }
}

/// Decides a change of one shelf inside the transaction. May run more than once.
pub type CannedDecision<'a> =
    &'a (dyn Fn(&[CannedReply], &dyn IdSource) -> CannedVerdict + Send + Sync);

/// Stored canned replies (`cg_chat_canned`).
///
/// # Contract
/// - One call is one transaction; what it returns is committed and flushed (A2).
/// - `change` shows all replies of the shelf, by id, and writes what the verdict says; changes of one shelf follow
///   one another.
/// - `list` gives all replies of these shelves, by id.
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written; after `Indeterminate` the caller repeats
/// the call, which is harmless.
#[async_trait]
pub trait CannedStore: Send + Sync {
    /// Changes one shelf.
    async fn change(
        &self,
        shelf: &Shelf,
        decide: CannedDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<CannedVerdict, StoreFault>;

    /// Everything on these shelves.
    async fn list(&self, shelves: &[Shelf]) -> Result<Vec<CannedReply>, StoreFault>;
}
