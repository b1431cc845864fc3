//! What clients send. Reading is by hand, so that refusals name the field; writing is for test clients.

use std::collections::BTreeMap;
use std::fmt;

use kefu_core::limit::{MAX_NOTE_CHARS, MAX_RATING_CHARS};
use kefu_core::{AdminId, ClientMsgId, ErrorCode, MsgId, Role, Seq, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canned::{CannedListRequest, CannedPut, CannedRef};
use crate::fields::{Fields, Problem, Required as _};
use crate::frames::frames;
use crate::history::HistoryRequest;
use crate::locale::Locale;
use crate::note::{NoteAdd, NoteListRequest};
use crate::page::PageReport;
use crate::send::SendMessage;
use crate::sessions::SessionListRequest;
use crate::supervisor::BoardRequest;
use crate::text::{
    Comment, DecimalId, PersonId, Position, Score, ShortText, decimal, optional_decimal,
};
use crate::vocabulary::{AckStatus, Intent, Typing};

frames! {
    /// A frame from a client.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    pub enum ClientFrame {
        /// Opens, resumes, or renews an expired token in place. Must be the first frame.
        "chat.connect" => Connect(Connect),
        /// Sends a message.
        "chat.message.send" => Send(SendMessage),
        /// Reports a message as delivered or read.
        "chat.message.ack" => Ack(Ack),
        /// Says whether the sender types.
        "chat.typing" => Typing(Typing),
        /// Ends a session.
        "chat.session.end" => End(SessionRef),
        /// Judges a session.
        "chat.session.rate" => Rate(Rate),
        /// A heartbeat.
        "chat.ping" => Ping(Empty),
        /// The agent takes new sessions.
        "chat.agent.online" => AgentOnline(AgentOnline),
        /// The agent takes no new sessions.
        "chat.agent.offline" => AgentOffline(AgentOffline),
        /// Hands a session to a colleague.
        "chat.session.transfer" => Transfer(Transfer),
        /// Asks for a page of messages.
        "chat.history" => History(HistoryRequest),
        /// Asks for the waiting line.
        "chat.queue.list" => QueueList(Empty),
        /// Takes a waiting session.
        "chat.session.claim" => Claim(SessionRef),
        /// Asks for all agents.
        "chat.agent.list" => AgentList(Empty),
        /// A supervisor looks into a session from now on.
        "chat.session.watch" => Watch(SessionRef),
        /// A supervisor no longer looks into a session.
        "chat.session.unwatch" => Unwatch(SessionRef),
        /// Asks for the board, and has it pushed.
        "chat.board" => Board(BoardRequest),
        /// Asks why a session went where it went.
        "chat.assignment.explain" => Explain(SessionRef),
        /// Says which page a user looks at.
        "chat.page" => Page(PageReport),
        /// Asks for sessions, past ones among them.
        "chat.sessions.list" => SessionsList(SessionListRequest),
        /// Writes a private note about a session.
        "chat.note.add" => NoteAdd(NoteAdd),
        /// Asks for a session's private notes.
        "chat.note.list" => NoteList(NoteListRequest),
        /// Asks for canned replies.
        "chat.canned.list" => CannedList(CannedListRequest),
        /// Writes a canned reply.
        "chat.canned.put" => CannedPut(CannedPut),
        /// Deletes a canned reply.
        "chat.canned.delete" => CannedDelete(CannedRef),
    }
}

impl ClientFrame {
    /// Reads the payload of `event`, which must be one of [`Self::EVENTS`].
    pub(crate) fn parse(
        event: &str,
        fields: &mut Fields,
        key: Option<ClientMsgId>,
        max_chars: usize,
    ) -> Result<Self, Problem> {
        Ok(match event {
            "chat.connect" => Self::Connect(Connect::parse(fields)?),
            "chat.message.send" => Self::Send(SendMessage::parse(fields, key, max_chars)?),
            "chat.message.ack" => Self::Ack(Ack::parse(fields)?),
            "chat.typing" => Self::Typing(typing(fields)?),
            "chat.session.end" => Self::End(SessionRef::parse(fields)?),
            "chat.session.rate" => Self::Rate(Rate::parse(fields)?),
            "chat.ping" => Self::Ping(Empty {}),
            "chat.agent.online" => Self::AgentOnline(AgentOnline::parse(fields)?),
            "chat.agent.offline" => Self::AgentOffline(AgentOffline::parse(fields)?),
            "chat.session.transfer" => Self::Transfer(Transfer::parse(fields)?),
            "chat.history" => Self::History(HistoryRequest::parse(fields)?),
            "chat.queue.list" => Self::QueueList(Empty {}),
            "chat.session.claim" => Self::Claim(SessionRef::parse(fields)?),
            "chat.agent.list" => Self::AgentList(Empty {}),
            "chat.session.watch" => Self::Watch(SessionRef::parse(fields)?),
            "chat.session.unwatch" => Self::Unwatch(SessionRef::parse(fields)?),
            "chat.board" => Self::Board(BoardRequest::parse(fields)?),
            "chat.assignment.explain" => Self::Explain(SessionRef::parse(fields)?),
            "chat.page" => Self::Page(PageReport::parse(fields)?),
            "chat.sessions.list" => Self::SessionsList(SessionListRequest::parse(fields)?),
            "chat.note.add" => Self::NoteAdd(NoteAdd::parse(fields)?),
            "chat.note.list" => Self::NoteList(NoteListRequest::parse(fields)?),
            "chat.canned.list" => Self::CannedList(CannedListRequest::parse(fields)?),
            "chat.canned.put" => Self::CannedPut(CannedPut::parse(fields)?),
            "chat.canned.delete" => Self::CannedDelete(CannedRef::parse(fields)?),
            _ => return Err(Problem { code: ErrorCode::UnknownEvent, message: UNKNOWN.into() }),
        })
    }
}

/// The message of `unknown_event`.
pub(crate) const UNKNOWN: &str = "unknown event";

/// No fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Empty {}

/// A session and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRef {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
}

impl SessionRef {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { session_id: fields.id("sessionId").required("sessionId")? })
    }
}

/// A signed token. Not printed by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// Wraps a token, unchecked.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The token, to be verified.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// `chat.connect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connect {
    /// The only source of identity (A3).
    pub token: Token,
    /// Where the person comes from, shown to agents.
    #[serde(default)]
    #[schemars(with = "ShortText")]
    pub source: String,
    /// What a user wants.
    #[serde(default)]
    pub intent: Intent,
    /// The session that `lastSeq` speaks of.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<DecimalId>")]
    pub session_id: Option<SessionId>,
    /// A user has everything up to here; ignored without `sessionId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Position>")]
    pub last_seq: Option<Seq>,
    /// An agent has everything up to here, by session.
    #[serde(serialize_with = "seqs", skip_serializing_if = "BTreeMap::is_empty", default)]
    #[schemars(with = "BTreeMap<String, Position>")]
    pub last_seqs: BTreeMap<SessionId, Seq>,
    /// Language of the server's own texts, as a BCP 47 tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ShortText>")]
    pub locale: Option<String>,
}

impl Connect {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            token: token(fields)?,
            source: fields.short_text("source")?.unwrap_or_default(),
            intent: fields.word("intent", "consult or resume")?.unwrap_or_default(),
            session_id: fields.id("sessionId")?,
            last_seq: fields.seq("lastSeq")?,
            last_seqs: fields.seqs("lastSeqs")?,
            locale: fields.short_text("locale")?,
        })
    }

    /// What the device has already (M4): a user of one session, nothing unless both parts were given; an agent of
    /// each named session.
    #[must_use]
    pub fn positions(&self, role: Role) -> BTreeMap<SessionId, Seq> {
        match role {
            Role::User => self.session_id.zip(self.last_seq).into_iter().collect(),
            Role::Agent | Role::Supervisor => self.last_seqs.clone(),
        }
    }

    /// The language of the server's own texts on this connection.
    #[must_use]
    pub fn language(&self) -> Locale {
        Locale::of_tag(self.locale.as_deref())
    }
}

/// A missing token is a failed login, not a malformed frame.
fn token(fields: &mut Fields) -> Result<Token, Problem> {
    let token = fields.text("token").ok().flatten().filter(|token| !token.is_empty());
    let missing =
        || Problem { code: ErrorCode::Unauthenticated, message: "token is missing".into() };
    token.map(Token).ok_or_else(missing)
}

fn seqs<S: serde::Serializer>(
    seqs: &BTreeMap<SessionId, Seq>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(seqs.iter().map(|(id, seq)| (id.to_string(), seq)))
}

/// `chat.message.ack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    /// The message.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub msg_id: MsgId,
    /// How far it came.
    #[serde(default)]
    pub status: AckStatus,
    /// Also every earlier message of the other side in that session.
    #[serde(default)]
    pub cumulative: bool,
}

impl Ack {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            msg_id: fields.id("msgId").required("msgId")?,
            status: fields.word("status", "read or delivered")?.unwrap_or_default(),
            cumulative: fields.flag("cumulative")?.unwrap_or_default(),
        })
    }
}

fn typing(fields: &mut Fields) -> Result<Typing, Problem> {
    Ok(Typing {
        session_id: fields.id("sessionId").required("sessionId")?,
        is_typing: fields.flag("isTyping").required("isTyping")?,
        sender_type: None,
    })
}

/// `chat.session.rate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// 1 … 5.
    #[schemars(with = "Score")]
    pub rating: u8,
    /// May be empty.
    #[serde(default)]
    #[schemars(with = "Comment")]
    pub content: String,
}

impl Rate {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let session_id = fields.id("sessionId").required("sessionId")?;
        let rating: u8 = fields.whole("rating").required("rating")?;
        if !(1..=5).contains(&rating) {
            return Err(Problem::bad("rating must be 1 to 5"));
        }
        let content = fields.comment("content", MAX_RATING_CHARS)?.unwrap_or_default();
        Ok(Self { session_id, rating, content })
    }
}

/// `chat.agent.online`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOnline {
    /// The agent's cap, from 1 to the configured maximum (Z1).
    pub max_sessions: u32,
}

impl AgentOnline {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { max_sessions: fields.whole("maxSessions").required("maxSessions")? })
    }
}

/// `chat.agent.offline`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOffline {
    /// Puts the open sessions back into the line.
    #[serde(default)]
    pub requeue: bool,
}

impl AgentOffline {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { requeue: fields.flag("requeue")?.unwrap_or_default() })
    }
}

/// `chat.session.transfer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Who is to have it.
    #[schemars(with = "PersonId")]
    pub target_admin_id: AdminId,
    /// A word to the colleague, which the user never sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comment>")]
    pub note: Option<String>,
}

impl Transfer {
    fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            session_id: fields.id("sessionId").required("sessionId")?,
            target_admin_id: fields.id("targetAdminId").required("targetAdminId")?,
            note: fields.comment("note", MAX_NOTE_CHARS)?.filter(|note| !note.trim().is_empty()),
        })
    }
}
