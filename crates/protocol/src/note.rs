//! Private notes, as agents and supervisors write and see them. No frame of a user has one (B95).

use kefu_core::limit::MAX_NOTE_CHARS;
use kefu_core::text::check_message_text;
use kefu_core::{AdminId, ClientMsgId, NoteId, Page, PageLimit, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Problem, Required as _};
use crate::text::{
    ClientKey, Comment, DecimalId, PageSize, PersonId, UnixMillis, decimal, optional_decimal,
};

/// `chat.note.add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoteAdd {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// What it says; not blank.
    #[schemars(with = "Comment")]
    pub content: String,
    /// The author's own key: the same again gives the same note.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ClientKey>")]
    pub client_msg_id: Option<ClientMsgId>,
}

impl NoteAdd {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let session_id = fields.id("sessionId").required("sessionId")?;
        let content = fields.text("content").required("content")?;
        check_message_text(&content, MAX_NOTE_CHARS).map_err(Problem::content)?;
        Ok(Self { session_id, content, client_msg_id: fields.id("clientMsgId")? })
    }
}

/// `chat.note.list` as a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoteListRequest {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Only notes below this one; the latest page without it.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<DecimalId>")]
    pub before: Option<NoteId>,
    /// 50 when left out.
    #[serde(serialize_with = "page_size", default = "largest_page")]
    #[schemars(with = "Option<PageSize>")]
    pub limit: PageLimit,
}

impl NoteListRequest {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            session_id: fields.id("sessionId").required("sessionId")?,
            before: fields.id("before")?,
            limit: fields.page_limit()?,
        })
    }
}

/// Writes a `limit`.
pub(crate) fn page_size<S: serde::Serializer>(
    limit: &PageLimit,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(limit.get())
}

pub(crate) const fn largest_page() -> PageLimit {
    PageLimit::MAX
}

/// `chat.note.new`: the answer to `chat.note.add`, and pushed to all who may read the session's notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoteObject {
    /// The note; larger ones of a session are later.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub note_id: NoteId,
    /// What it is about.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Who wrote it.
    #[schemars(with = "PersonId")]
    pub admin_id: AdminId,
    /// The author's display name at that time.
    pub name: String,
    /// What it says.
    #[schemars(with = "Comment")]
    pub content: String,
    /// When it was written.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
    /// The author's key; only to the author.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ClientKey>")]
    pub client_msg_id: Option<ClientMsgId>,
}

impl NoteObject {
    /// The note as its author sees it (`own`), or somebody else.
    #[must_use]
    pub fn new(note: &kefu_console::Note, own: bool) -> Self {
        Self {
            note_id: note.id,
            session_id: note.session_id,
            admin_id: note.admin_id.clone(),
            name: note.name.clone(),
            content: note.content.clone(),
            time: note.time,
            client_msg_id: note.key.clone().filter(|_| own),
        }
    }
}

/// `chat.note.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoteList {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Ascending by `noteId`.
    pub notes: Vec<NoteObject>,
    /// Whether there are earlier ones.
    pub has_more: bool,
}

impl NoteList {
    /// A page as `reader` sees it.
    #[must_use]
    pub fn new(
        session_id: SessionId,
        page: &Page<kefu_console::Note>,
        reader: Option<&AdminId>,
    ) -> Self {
        let seen =
            |note: &kefu_console::Note| NoteObject::new(note, Some(&note.admin_id) == reader);
        Self { session_id, notes: page.items.iter().map(seen).collect(), has_more: page.has_more }
    }
}
