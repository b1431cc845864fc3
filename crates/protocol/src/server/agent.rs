//! What only agents and supervisors see: sessions that come and go, the waiting line, each other.

use kefu_core::{AdminId, Seq, SessionId, Timestamp};
use kefu_messaging::{QueueEntry, SessionOffer};
use kefu_presence::Agent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Comment, DecimalId, PersonId, Position, UnixMillis, decimal};
use crate::vocabulary::{Availability, UserInfo};

/// `chat.session.new`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionNew {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Its user.
    pub user_info: UserInfo,
    /// Where the user came from; may be empty.
    pub source: String,
    /// The user's messages not yet read.
    pub unread: u32,
    /// The last position, to pull history from.
    #[schemars(with = "Position")]
    pub last_seq: Seq,
    /// A colleague's word on a transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comment>")]
    pub note: Option<String>,
}

impl From<&SessionOffer> for SessionNew {
    fn from(offer: &SessionOffer) -> Self {
        Self {
            session_id: offer.session_id,
            user_info: (&offer.user).into(),
            source: offer.source.clone(),
            unread: offer.unread,
            last_seq: offer.last_seq,
            note: offer.note.clone(),
        }
    }
}

/// `chat.queue.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueList {
    /// The first 50, highest balance first.
    pub sessions: Vec<QueuedSession>,
    /// How many wait.
    pub total: u32,
    /// Grows, so that an older list is noticed; starts anew with the server.
    pub version: i64,
}

impl QueueList {
    /// The list of these entries.
    #[must_use]
    pub fn new(entries: &[QueueEntry], total: u32, version: i64) -> Self {
        Self { sessions: entries.iter().map(QueuedSession::from).collect(), total, version }
    }
}

/// One waiting session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedSession {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Its user.
    pub user_info: UserInfo,
    /// Since when; kept through a requeue (Z7).
    #[schemars(with = "UnixMillis")]
    pub waiting_since: Timestamp,
    /// 1 is next.
    pub position: u32,
}

impl From<&QueueEntry> for QueuedSession {
    fn from(entry: &QueueEntry) -> Self {
        Self {
            session_id: entry.session_id,
            user_info: (&entry.user).into(),
            waiting_since: entry.waiting_since,
            position: entry.position,
        }
    }
}

/// Why a session left an agent without having ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemovalReason {
    /// A colleague has it.
    Transferred,
    /// It waits again.
    Requeued,
}

/// `chat.session.removed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRemoved {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Why.
    pub reason: RemovalReason,
    /// The colleague who has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PersonId>")]
    pub target_admin_id: Option<AdminId>,
}

impl SessionRemoved {
    pub(crate) fn new(session_id: SessionId, reason: &kefu_messaging::RemovalReason) -> Self {
        let (reason, target_admin_id) = match reason {
            kefu_messaging::RemovalReason::Transferred(target) => {
                (RemovalReason::Transferred, Some(target.clone()))
            }
            kefu_messaging::RemovalReason::Requeued => (RemovalReason::Requeued, None),
        };
        Self { session_id, reason, target_admin_id }
    }
}

/// `chat.agent.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// What the agent chose.
    pub status: Availability,
    /// The cap.
    pub max_sessions: u32,
    /// The load.
    pub active_sessions: u32,
}

impl From<&Agent> for AgentStatus {
    fn from(agent: &Agent) -> Self {
        let online = agent.availability == kefu_presence::Availability::Online;
        Self {
            status: Availability::when(online),
            max_sessions: agent.max_sessions,
            active_sessions: agent.active_sessions,
        }
    }
}

/// `chat.agent.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// The agents.
    pub agents: Vec<AgentEntry>,
}

impl AgentList {
    /// The list of these agents.
    #[must_use]
    pub fn new(agents: &[Agent]) -> Self {
        Self { agents: agents.iter().map(AgentEntry::from).collect() }
    }
}

/// One agent, for the transfer dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    /// The agent.
    #[schemars(with = "PersonId")]
    pub admin_id: AdminId,
    /// Display name.
    pub name: String,
    /// `online` only while connected as well.
    pub status: Availability,
    /// The load.
    pub active_sessions: u32,
    /// The cap.
    pub max_sessions: u32,
}

impl From<&Agent> for AgentEntry {
    fn from(agent: &Agent) -> Self {
        let online = agent.availability == kefu_presence::Availability::Online && agent.live;
        Self {
            admin_id: agent.info.admin_id.clone(),
            name: agent.info.name.clone(),
            status: Availability::when(online),
            active_sessions: agent.active_sessions,
            max_sessions: agent.max_sessions,
        }
    }
}
