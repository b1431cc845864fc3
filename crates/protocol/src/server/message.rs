//! Messages, their acknowledgements and pages of them.

use kefu_core::{ClientMsgId, MsgId, Page, Person, Seq, SessionId, Timestamp};
use kefu_messaging::{Message, Sender, Stored};
use kefu_upload::UploadPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{ClientKey, DecimalId, Position, UnixMillis, decimal};
use crate::vocabulary::{MessageStatus, MessageType, SenderType};

/// Makes the link under which an image may be fetched (U1). Whoever calls has checked that the reader may see it.
pub trait SignLinks {
    /// A link to the image, with expiry and signature.
    fn sign(&self, path: &UploadPath) -> String;
}

impl<F: Fn(&UploadPath) -> String> SignLinks for F {
    fn sign(&self, path: &UploadPath) -> String {
        self(path)
    }
}

/// A message: pushed as `chat.message.new`, and listed in `unread` and in history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageObject {
    /// The message.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub msg_id: MsgId,
    /// Its session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Who wrote it.
    pub sender_type: SenderType,
    /// Plain text, or a signed link that expires.
    pub content: String,
    /// When it was stored.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
    /// Its position; a gap tells the client to pull (M5).
    #[schemars(with = "Position")]
    pub seq: Seq,
    /// What `content` is.
    pub msg_type: MessageType,
    /// `userId` or `adminId`; absent for `system` and `bot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_id: Option<String>,
    /// The sender's key, only where the sender reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ClientKey>")]
    pub client_msg_id: Option<ClientMsgId>,
    /// Which push of it this is, from 1 (M3); absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How far it has come, always in lists; absent in pushes, which `chat.message.peer_ack` follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<MessageStatus>,
}

impl MessageObject {
    /// A push, the same for all its receivers; `own` are the sender's other devices.
    #[must_use]
    pub fn pushed(message: &Message, attempt: u32, own: bool, links: &dyn SignLinks) -> Self {
        Self { attempt: Some(attempt), ..Self::new(message, own, links) }
    }

    /// An entry of `unread` or of a page, as `viewer` sees it.
    #[must_use]
    pub fn listed(message: &Message, viewer: &Person, links: &dyn SignLinks) -> Self {
        let own = wrote(&message.sender, viewer);
        Self { status: Some(message.status.into()), ..Self::new(message, own, links) }
    }

    fn new(message: &Message, own: bool, links: &dyn SignLinks) -> Self {
        let sender_id = message.sender.id();
        Self {
            msg_id: message.msg_id,
            session_id: message.session_id,
            sender_type: (&message.sender).into(),
            content: content(message, links),
            time: message.create_time,
            seq: message.seq,
            msg_type: message.msg_type.into(),
            sender_id: (!sender_id.is_empty()).then(|| sender_id.to_owned()),
            client_msg_id: own.then(|| message.client_msg_id.clone()),
            attempt: None,
            status: None,
        }
    }
}

/// An image is stored as a path and signed on its way out.
pub(crate) fn content(message: &Message, links: &dyn SignLinks) -> String {
    match message.msg_type {
        kefu_messaging::MessageType::Text => message.content.clone(),
        kefu_messaging::MessageType::Image => message
            .content
            .parse()
            .map_or_else(|_| message.content.clone(), |path: UploadPath| links.sign(&path)),
    }
}

fn wrote(sender: &Sender, viewer: &Person) -> bool {
    match (sender, viewer) {
        (Sender::User(sender), Person::User(viewer)) => sender == viewer,
        (Sender::Agent(sender), Person::Agent(viewer)) => sender == viewer,
        (Sender::User(_), Person::Agent(_))
        | (Sender::Agent(_), Person::User(_))
        | (Sender::System | Sender::Bot, _) => false,
    }
}

/// `chat.message.server_ack`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerAck {
    /// The client's key.
    #[schemars(with = "ClientKey")]
    pub client_msg_id: ClientMsgId,
    /// The stored message.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub msg_id: MsgId,
    /// How far it has come; `pending` unless this is a repeat.
    pub status: MessageStatus,
    /// Its position.
    #[schemars(with = "Position")]
    pub seq: Seq,
    /// When it was stored.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
    /// Whether an earlier send with this key had stored it (T2).
    pub duplicate: bool,
}

impl From<&Stored> for ServerAck {
    fn from(stored: &Stored) -> Self {
        let message = &stored.message;
        Self {
            client_msg_id: message.client_msg_id.clone(),
            msg_id: message.msg_id,
            status: message.status.into(),
            seq: message.seq,
            time: message.create_time,
            duplicate: stored.duplicate,
        }
    }
}

/// `chat.message.peer_ack`: one frame a message, also after a cumulative report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerAck {
    /// The message.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub msg_id: MsgId,
    /// `delivered`, `read` or `failed`.
    pub status: MessageStatus,
    /// Its session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Its position.
    #[schemars(with = "Position")]
    pub seq: Seq,
}

/// `chat.history`, also the body of the HTTP call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Ascending by `seq`.
    pub messages: Vec<MessageObject>,
    /// Whether more follow in the asked direction.
    pub has_more: bool,
}

impl History {
    /// A page as `viewer` sees it.
    #[must_use]
    pub fn new(
        session_id: SessionId,
        page: &Page<Message>,
        viewer: &Person,
        links: &dyn SignLinks,
    ) -> Self {
        let listed = |message| MessageObject::listed(message, viewer, links);
        Self {
            session_id,
            messages: page.items.iter().map(listed).collect(),
            has_more: page.has_more,
        }
    }
}
