//! A stored message.

use std::fmt;

use kefu_core::{AdminId, ClientMsgId, MsgId, Seq, SessionId, Timestamp, UserId};

/// Who wrote a message (`sender_type`, `sender_id`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The session's user.
    User(UserId),
    /// An agent who owned the session then.
    Agent(AdminId),
    /// kefu itself.
    System,
    /// An automatic answer.
    Bot,
}

impl Sender {
    /// The stored and wire text of the type.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Agent(_) => "agent",
            Self::System => "system",
            Self::Bot => "bot",
        }
    }

    /// The stored id; empty for kefu itself and bots.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User(id) => id.as_str(),
            Self::Agent(id) => id.as_str(),
            Self::System | Self::Bot => "",
        }
    }

    /// The sender of a stored type and id.
    #[must_use]
    pub fn from_texts(kind: &str, id: &str) -> Option<Self> {
        match kind {
            "user" => UserId::new(id).ok().map(Self::User),
            "agent" => AdminId::new(id).ok().map(Self::Agent),
            "system" => Some(Self::System),
            "bot" => Some(Self::Bot),
            _ => None,
        }
    }

    /// On which side of the session the sender sits.
    #[must_use]
    pub const fn side(&self) -> Side {
        match self {
            Self::User(_) => Side::User,
            Self::Agent(_) | Self::System | Self::Bot => Side::Agent,
        }
    }
}

/// The two sides of a session. A message's receiver is whoever holds the other side *now* (M2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The visitor.
    User,
    /// The company: the owner, kefu itself, bots.
    Agent,
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::User => Self::Agent,
            Self::Agent => Self::User,
        }
    }
}

/// What the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Plain text.
    Text,
    /// The path of an uploaded image.
    Image,
}

impl MessageType {
    /// The stored and wire text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
        }
    }

    /// The type of a text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Text, Self::Image].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// How far a message has come. See `protocol.md`, "Message status".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageStatus {
    /// Stored; no device of the receiver has it.
    Pending,
    /// Pushes went unanswered (M3). Not final: the receiver may turn up.
    Failed,
    /// A device of the receiver has it.
    Delivered,
    /// The receiver saw it.
    Read,
}

impl MessageStatus {
    /// The stored and wire text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Read => "read",
        }
    }

    /// The status of a text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Pending, Self::Failed, Self::Delivered, Self::Read]
            .into_iter()
            .find(|status| status.as_str() == text)
    }

    /// Whether a message in this status may become `next`: only ever forward, `failed` only from
    /// `pending` (M3).
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Pending => false,
            Self::Failed => matches!(self, Self::Pending),
            Self::Delivered => matches!(self, Self::Pending | Self::Failed),
            Self::Read => !matches!(self, Self::Read),
        }
    }

    /// Whether a device of the receiver is known to have it: never pushed again (2.5).
    #[must_use]
    pub const fn is_delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Read)
    }
}

impl fmt::Display for MessageStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One stored message (`cg_chat_message`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Unique; ordered as `seq` is within a session (T1).
    pub msg_id: MsgId,
    /// The session.
    pub session_id: SessionId,
    /// Position in the session.
    pub seq: Seq,
    /// Who wrote it.
    pub sender: Sender,
    /// The sender's own key (T2).
    pub client_msg_id: ClientMsgId,
    /// What `content` is.
    pub msg_type: MessageType,
    /// Plain text, or the path of an image, without a query.
    pub content: String,
    /// How far it has come.
    pub status: MessageStatus,
    /// The millisecond inside `msg_id` (T1).
    pub create_time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::MessageStatus::{Delivered, Failed, Pending, Read};

    #[test]
    fn a_status_never_goes_back() {
        let allowed = [
            (Pending, Failed),
            (Pending, Delivered),
            (Pending, Read),
            (Failed, Delivered),
            (Failed, Read),
            (Delivered, Read),
        ];
        for from in [Pending, Failed, Delivered, Read] {
            for to in [Pending, Failed, Delivered, Read] {
                assert_eq!(from.may_become(to), allowed.contains(&(from, to)), "{from} -> {to}");
            }
        }
    }
}
