//! `chat.connected`: everything a device needs to show its person's present state.

use std::time::Duration;

use kefu_core::limit::PAGE;
use kefu_core::{Page, Role, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::server::message::MessageObject;
use crate::server::session::SessionObject;
use crate::text::{self, DecimalId, UnixMillis, optional_decimal};
use crate::vocabulary::AgentInfo;

/// The answer to `chat.connect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// The user's open session; null for agents, and for `resume` without an open session.
    #[serde(with = "optional_decimal")]
    #[schemars(with = "Option<DecimalId>")]
    pub session_id: Option<SessionId>,
    /// Who serves it; null while it waits, and for agents.
    pub agent_info: Option<AgentInfo>,
    /// Of the token.
    #[schemars(with = "text::Role")]
    pub role: Role,
    /// The user's open session; for `resume` without one, the latest ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionObject>,
    /// An agent's open sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionObject>>,
    /// What no device of this person has yet, or what is above the stated positions; over all sessions, oldest
    /// first, at most 50 (CC-09, M4).
    pub unread: Vec<MessageObject>,
    /// Whether there is more than `unread` shows: page with `chat.history`.
    pub has_more: bool,
    /// How often to send `chat.ping` (CC-10).
    pub heartbeat_interval_ms: u64,
    /// The server's clock.
    #[schemars(with = "UnixMillis")]
    pub server_time: Timestamp,
    /// What the server accepts.
    pub limits: Limits,
}

/// What the server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Unicode scalar values in a text message.
    pub max_chars: usize,
    /// Bytes of an image.
    pub max_upload_bytes: u64,
    /// Messages in a page.
    pub page: u32,
}

impl Limits {
    /// The limits of a server with these settings.
    #[must_use]
    pub const fn new(max_chars: usize, max_upload_bytes: u64) -> Self {
        Self { max_chars, max_upload_bytes, page: PAGE }
    }
}

/// What a person has: a user their session, an agent theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A user; the session is the open one, or the latest ended, or none ever was.
    User(Option<SessionObject>),
    /// An agent with their open sessions.
    Agent(Vec<SessionObject>),
    /// A supervisor: owns no session.
    Supervisor,
}

/// The parts that [`Connected`] is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedParts {
    /// Whose device it is and what they have.
    pub standing: Standing,
    /// What this device misses.
    pub unread: Page<MessageObject>,
    /// What the server accepts.
    pub limits: Limits,
    /// How often the client is to send a sign of life (CC-10).
    pub heartbeat: Duration,
    /// Now.
    pub server_time: Timestamp,
}

impl From<ConnectedParts> for Connected {
    fn from(parts: ConnectedParts) -> Self {
        let ConnectedParts { standing, unread, limits, heartbeat, server_time } = parts;
        let (role, session, sessions) = match standing {
            Standing::User(session) => (Role::User, session, None),
            Standing::Agent(sessions) => (Role::Agent, None, Some(sessions)),
            Standing::Supervisor => (Role::Supervisor, None, Some(Vec::new())),
        };
        let open = session.as_ref().filter(|session| session.is_open());
        Self {
            session_id: open.map(|session| session.session_id),
            agent_info: open.and_then(|session| session.agent_info.clone()),
            role,
            session,
            sessions,
            unread: unread.items,
            has_more: unread.has_more,
            heartbeat_interval_ms: u64::try_from(heartbeat.as_millis()).unwrap_or(u64::MAX),
            server_time,
            limits,
        }
    }
}
