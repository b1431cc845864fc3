//! A session and what happens to it.

use kefu_core::{AdminId, Seq, SessionId, Timestamp};
use kefu_queue::Place;
use kefu_session::{Rating, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::locale::Locale;
use crate::text::{Comment, DecimalId, PersonId, Position, Score, UnixMillis, decimal};
use crate::vocabulary::{AgentInfo, EndedBy, SessionStatus, UserInfo};

/// `session`: a session's whole state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionObject {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Where it stands.
    pub status: SessionStatus,
    /// Who serves it, or served it at the end; null while it waits.
    pub agent_info: Option<AgentInfo>,
    /// The last position.
    #[schemars(with = "Position")]
    pub last_seq: Seq,
    /// While it waits: 1 is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// While it waits: how many wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// Whether any agent is online.
    pub agents_online: bool,
    /// When its user opened it.
    #[schemars(with = "UnixMillis")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UnixMillis>")]
    pub ended_at: Option<Timestamp>,
    /// The user's judgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Score>")]
    pub rating: Option<u8>,
    /// What they said with it; only to agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comment>")]
    pub rating_content: Option<String>,
    /// Its user; only to agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_info: Option<UserInfo>,
    /// Where its user came from; only to agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The other side's messages not yet read; only to agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_count: Option<u32>,
    /// A colleague's words, if it came by a transfer; only to agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comment>")]
    pub note: Option<String>,
}

/// The state of `session`. `agent` describes its owner, `place` where it waits.
#[must_use]
pub fn session_object(
    session: &Session,
    agent: Option<&kefu_core::AgentInfo>,
    place: Option<Place>,
    agents_online: bool,
) -> SessionObject {
    SessionObject {
        session_id: session.id,
        status: session.status.into(),
        agent_info: agent.map(AgentInfo::from),
        last_seq: session.last_seq,
        position: place.map(|place| place.position),
        total: place.map(|place| place.total),
        agents_online,
        started_at: session.started_at,
        ended_at: session.ended_at,
        rating: session.rating.as_ref().map(|rating| rating.score),
        rating_content: None,
        user_info: None,
        source: None,
        unread_count: None,
        note: None,
    }
}

impl SessionObject {
    /// Whether it has not ended.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.status, SessionStatus::Ended)
    }

    /// The state as an agent sees it: with the user, how many messages are not read, and the note of a
    /// transfer.
    #[must_use]
    pub fn for_agent(self, session: &Session, unread_count: u32, note: Option<String>) -> Self {
        let comment = session.rating.as_ref().map(|rating| &rating.comment);
        Self {
            rating_content: comment.filter(|comment| !comment.is_empty()).cloned(),
            user_info: Some((&session.user_info()).into()),
            source: Some(session.source.clone()),
            unread_count: Some(unread_count),
            note,
            ..self
        }
    }
}

/// `chat.session.assigned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAssigned {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Who serves it now.
    pub agent_info: AgentInfo,
}

/// `chat.session.ended`, the same for everybody and after every repeat (S4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnded {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// By whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UnixMillis>")]
    pub time: Option<Timestamp>,
}

impl From<&Session> for SessionEnded {
    fn from(session: &Session) -> Self {
        Self {
            session_id: session.id,
            ended_by: session.ended_by.as_ref().map(EndedBy::from),
            time: session.ended_at,
        }
    }
}

/// `chat.session.requeued`; a place in line or the offline notice follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRequeued {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Why; words may be added.
    pub reason: String,
}

/// `chat.offline_notice`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfflineNotice {
    /// For the visitor, in the connection's language.
    pub message: String,
}

impl From<Locale> for OfflineNotice {
    fn from(locale: Locale) -> Self {
        Self { message: locale.offline_notice().to_owned() }
    }
}

/// `chat.pong`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pong {
    /// The server's clock.
    #[schemars(with = "UnixMillis")]
    pub server_time: Timestamp,
}

/// `chat.queue.position`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuePosition {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// 1 is next.
    pub position: u32,
    /// How many wait.
    pub total: u32,
}

/// `chat.session.rated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRated {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// As stored.
    #[schemars(with = "Score")]
    pub rating: u8,
    /// As stored.
    #[schemars(with = "Comment")]
    pub content: String,
    /// When it was given.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
}

impl SessionRated {
    /// The answer that shows what is stored.
    #[must_use]
    pub fn new(session_id: SessionId, rating: &Rating) -> Self {
        Self {
            session_id,
            rating: rating.score,
            content: rating.comment.clone(),
            time: rating.time,
        }
    }
}

/// `chat.session.read`: what another device of the same person has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRead {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// The other side's messages are read up to here.
    #[schemars(with = "Position")]
    pub seq: Seq,
}

/// `chat.session.transferred`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTransferred {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Who has it now.
    #[schemars(with = "PersonId")]
    pub target_admin_id: AdminId,
}
