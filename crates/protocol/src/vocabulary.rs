//! Words and objects that several frames share, each with its way from the domain.

use kefu_core::{Actor, AdminId, SessionId, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{DecimalId, MinorUnits, PersonId, decimal};

/// What a user wants by connecting (S1). Agents may leave it out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    /// Open a session, or return the open one: a visitor's act.
    #[default]
    Consult,
    /// Return the open session; never opens one. What every reconnect uses.
    Resume,
}

/// What a receiver reports of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AckStatus {
    /// A device has it.
    Delivered,
    /// A person saw it.
    #[default]
    Read,
}

impl From<AckStatus> for kefu_messaging::Receipt {
    fn from(status: AckStatus) -> Self {
        match status {
            AckStatus::Delivered => Self::Delivered,
            AckStatus::Read => Self::Read,
        }
    }
}

/// What `content` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MessageType {
    /// Plain text.
    Text,
    /// A link to an uploaded image.
    Image,
}

impl From<kefu_messaging::MessageType> for MessageType {
    fn from(msg_type: kefu_messaging::MessageType) -> Self {
        match msg_type {
            kefu_messaging::MessageType::Text => Self::Text,
            kefu_messaging::MessageType::Image => Self::Image,
        }
    }
}

/// How far a message has come; never goes back (M3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MessageStatus {
    /// Stored; no device of the receiver has it.
    Pending,
    /// Its pushes went unanswered; it is delivered when the receiver turns up.
    Failed,
    /// A device of the receiver has it; never pushed to that receiver again.
    Delivered,
    /// The receiver saw it.
    Read,
}

impl From<kefu_messaging::MessageStatus> for MessageStatus {
    fn from(status: kefu_messaging::MessageStatus) -> Self {
        match status {
            kefu_messaging::MessageStatus::Pending => Self::Pending,
            kefu_messaging::MessageStatus::Failed => Self::Failed,
            kefu_messaging::MessageStatus::Delivered => Self::Delivered,
            kefu_messaging::MessageStatus::Read => Self::Read,
        }
    }
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SenderType {
    /// The session's user.
    User,
    /// An agent.
    Agent,
    /// The server itself.
    System,
    /// An automatic answer.
    Bot,
}

impl From<&kefu_messaging::Sender> for SenderType {
    fn from(sender: &kefu_messaging::Sender) -> Self {
        match sender {
            kefu_messaging::Sender::User(_) => Self::User,
            kefu_messaging::Sender::Agent(_) => Self::Agent,
            kefu_messaging::Sender::System => Self::System,
            kefu_messaging::Sender::Bot => Self::Bot,
        }
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// In the line.
    Waiting,
    /// With an agent.
    Active,
    /// Over, for ever (S2).
    Ended,
}

impl From<kefu_session::Status> for SessionStatus {
    fn from(status: kefu_session::Status) -> Self {
        match status {
            kefu_session::Status::Waiting => Self::Waiting,
            kefu_session::Status::Active => Self::Active,
            kefu_session::Status::Ended => Self::Ended,
        }
    }
}

/// Whether an agent takes new sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Availability {
    /// Takes new sessions.
    Online,
    /// Takes none.
    Offline,
}

impl Availability {
    /// The word for an agent who does or does not take new sessions.
    #[must_use]
    pub const fn when(online: bool) -> Self {
        if online { Self::Online } else { Self::Offline }
    }
}

/// By whom a session was ended: the role, never the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// Its user.
    User,
    /// Its agent.
    Agent,
    /// A supervisor.
    Supervisor,
    /// The server itself.
    System,
}

impl From<&Actor> for EndedBy {
    fn from(actor: &Actor) -> Self {
        match actor {
            Actor::User(_) => Self::User,
            Actor::Agent(_) => Self::Agent,
            Actor::Supervisor(_) => Self::Supervisor,
            Actor::System => Self::System,
        }
    }
}

/// What users and colleagues see of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// The agent.
    #[schemars(with = "PersonId")]
    pub admin_id: AdminId,
    /// Display name.
    pub name: String,
    /// An http(s) URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

impl From<&kefu_core::AgentInfo> for AgentInfo {
    fn from(agent: &kefu_core::AgentInfo) -> Self {
        Self {
            admin_id: agent.admin_id.clone(),
            name: agent.name.clone(),
            avatar: agent.avatar.clone(),
        }
    }
}

/// What agents see of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The user.
    #[schemars(with = "PersonId")]
    pub user_id: UserId,
    /// Display name.
    pub name: String,
    /// An http(s) URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    /// In minor units, at most ± 2^53.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<MinorUnits>")]
    pub balance: Option<i64>,
    /// Whether the user is marked as important.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip: Option<bool>,
}

impl From<&kefu_core::UserInfo> for UserInfo {
    fn from(user: &kefu_core::UserInfo) -> Self {
        Self {
            user_id: user.user_id.clone(),
            name: user.name.clone(),
            avatar: user.avatar.clone(),
            balance: user.balance.map(|balance| balance.clamped().0),
            vip: user.vip,
        }
    }
}

/// Whether somebody types, the same in both directions. Ends by itself after 6 s (P3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Typing {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Whether the other side types.
    pub is_typing: bool,
    /// Which side, for a supervisor who watches both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sender_type: Option<SenderType>,
}
