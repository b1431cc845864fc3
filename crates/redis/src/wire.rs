//! What nodes say to each other, as JSON with its version (N1). Private: only nodes of one install
//! read it, during an upgrade in two versions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kefu_console::PageView;
use kefu_core::{
    AdminId, ClientMsgId, EventId, MsgId, NodeName, Person, Seq, SessionId, Timestamp, TraceId,
    UserId,
};
use kefu_desk::{NodeMessage, Relayed};
use kefu_events::{Envelope, Event, EventContext, SCHEMA_VERSION};
use kefu_messaging::{Message, MessageStatus, MessageType, Sender};
use serde::{Deserialize, Serialize};

/// Version of the shapes below.
const WIRE_VERSION: u16 = 1;

/// What one node says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A message.
    Message(NodeMessage),
    /// Something said before was lost on the way out.
    Lost,
}

/// Why what was heard is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Another version of the frame or of the event in it.
    Version,
    /// Not what this version says.
    Malformed,
}

impl Unreadable {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Malformed => "malformed",
        }
    }
}

/// The frame of `message` from `node`.
pub(crate) fn encode(node: &NodeName, message: &NodeMessage) -> Result<String, serde_json::Error> {
    let body = match message {
        NodeMessage::Event { envelope, message } => Body::Event {
            envelope: WireEnvelope::from(envelope),
            message: message.as_deref().map(WireMessage::from),
        },
        NodeMessage::Watching { node, sessions, board } => {
            Body::Watching { node: node.clone(), sessions: sessions.clone(), board: *board }
        }
        NodeMessage::Push { to, push, trace_id } => Body::Push {
            to: WirePerson::from(to),
            push: WirePush::from(push),
            trace_id: trace_id.clone(),
        },
    };
    frame(node, body)
}

/// The frame that tells others to expect a gap.
pub(crate) fn encode_lost(node: &NodeName) -> Result<String, serde_json::Error> {
    frame(node, Body::Lost)
}

fn frame(node: &NodeName, body: Body) -> Result<String, serde_json::Error> {
    let event_version = match &body {
        Body::Event { envelope, .. } => Some(envelope.schema_version),
        Body::Push { .. } | Body::Watching { .. } | Body::Lost => None,
    };
    let schema_version = WIRE_VERSION;
    serde_json::to_string(&Frame { schema_version, event_version, from: node.clone(), body })
}

/// Who says what.
pub(crate) fn decode(text: &str) -> Result<(NodeName, Word), Unreadable> {
    let Head { schema_version, event_version } = parse(text)?;
    let is_known = event_version.is_none_or(|version| version <= SCHEMA_VERSION);
    if schema_version != WIRE_VERSION || !is_known {
        return Err(Unreadable::Version);
    }
    let Frame { from, body, .. } = parse(text)?;
    Ok((from, body.into_word()?))
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|_| Unreadable::Malformed)
}

/// What every version has, read before the rest is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    schema_version: u16,
    event_version: Option<u16>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    schema_version: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_version: Option<u16>,
    from: NodeName,
    body: Body,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Body {
    Event {
        envelope: WireEnvelope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<WireMessage>,
    },
    Push {
        to: WirePerson,
        push: WirePush,
        /// Left out by what no frame caused.
        #[serde(rename = "traceId", default, skip_serializing_if = "Option::is_none")]
        trace_id: Option<TraceId>,
    },
    Watching {
        node: NodeName,
        sessions: BTreeSet<SessionId>,
        board: bool,
    },
    Lost,
}

impl Body {
    fn into_word(self) -> Result<Word, Unreadable> {
        let message = match self {
            Self::Lost => return Ok(Word::Lost),
            Self::Watching { node, sessions, board } => {
                NodeMessage::Watching { node, sessions, board }
            }
            Self::Push { to, push, trace_id } => {
                NodeMessage::Push { to: to.into(), push: push.try_into()?, trace_id }
            }
            Self::Event { envelope, message } => NodeMessage::Event {
                envelope: envelope.into(),
                message: message.map(Message::try_from).transpose()?.map(Arc::new),
            },
        };
        Ok(Word::Message(message))
    }
}

/// `event` has the shape of the outbox, whose version is `schema_version`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEnvelope {
    id: EventId,
    schema_version: u16,
    time: Timestamp,
    source: NodeName,
    trace_id: TraceId,
    event: Event,
}

impl From<&Envelope> for WireEnvelope {
    fn from(envelope: &Envelope) -> Self {
        Self {
            id: envelope.id,
            schema_version: envelope.schema_version,
            time: envelope.time,
            source: envelope.source.clone(),
            trace_id: envelope.trace_id.clone(),
            event: envelope.event.clone(),
        }
    }
}

impl From<WireEnvelope> for Envelope {
    fn from(wire: WireEnvelope) -> Self {
        let WireEnvelope { id, schema_version, time, source, trace_id, event } = wire;
        let context = EventContext { now: time, source, trace_id };
        Self::stored(id, schema_version, &context, event)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage {
    msg_id: MsgId,
    session_id: SessionId,
    seq: Seq,
    sender_type: String,
    sender_id: String,
    client_msg_id: ClientMsgId,
    msg_type: String,
    content: String,
    status: String,
    create_time: Timestamp,
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        Self {
            msg_id: message.msg_id,
            session_id: message.session_id,
            seq: message.seq,
            sender_type: message.sender.kind().to_owned(),
            sender_id: message.sender.id().to_owned(),
            client_msg_id: message.client_msg_id.clone(),
            msg_type: message.msg_type.as_str().to_owned(),
            content: message.content.clone(),
            status: message.status.as_str().to_owned(),
            create_time: message.create_time,
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = Unreadable;

    fn try_from(wire: WireMessage) -> Result<Self, Unreadable> {
        Ok(Self {
            msg_id: wire.msg_id,
            session_id: wire.session_id,
            seq: wire.seq,
            sender: Sender::from_texts(&wire.sender_type, &wire.sender_id)
                .ok_or(Unreadable::Malformed)?,
            client_msg_id: wire.client_msg_id,
            msg_type: MessageType::from_text(&wire.msg_type).ok_or(Unreadable::Malformed)?,
            content: wire.content,
            status: status(&wire.status)?,
            create_time: wire.create_time,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WirePerson {
    User(UserId),
    Agent(AdminId),
}

impl From<&Person> for WirePerson {
    fn from(person: &Person) -> Self {
        match person {
            Person::User(id) => Self::User(id.clone()),
            Person::Agent(id) => Self::Agent(id.clone()),
        }
    }
}

impl From<WirePerson> for Person {
    fn from(wire: WirePerson) -> Self {
        match wire {
            WirePerson::User(id) => Self::User(id),
            WirePerson::Agent(id) => Self::Agent(id),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
enum WirePush {
    PeerAck { session_id: SessionId, msg_id: MsgId, seq: Seq, status: String },
    Typing { session_id: SessionId, is_typing: bool },
    OfflineNotice,
    Read { session_id: SessionId, seq: Seq },
    Page { session_id: SessionId, url: String, title: String, language: String, time: Timestamp },
}

impl From<&Relayed> for WirePush {
    fn from(push: &Relayed) -> Self {
        match *push {
            Relayed::PeerAck { session_id, msg_id, seq, status } => {
                Self::PeerAck { session_id, msg_id, seq, status: status.as_str().to_owned() }
            }
            Relayed::Typing { session_id, is_typing } => Self::Typing { session_id, is_typing },
            Relayed::Read { session_id, seq } => Self::Read { session_id, seq },
            Relayed::Page { session_id, ref page, time } => {
                let PageView { url, title, language } = page.as_ref().clone();
                Self::Page { session_id, url, title, language, time }
            }
            Relayed::OfflineNotice => Self::OfflineNotice,
        }
    }
}

impl TryFrom<WirePush> for Relayed {
    type Error = Unreadable;

    fn try_from(wire: WirePush) -> Result<Self, Unreadable> {
        Ok(match wire {
            WirePush::PeerAck { session_id, msg_id, seq, status: text } => {
                Self::PeerAck { session_id, msg_id, seq, status: status(&text)? }
            }
            WirePush::Typing { session_id, is_typing } => Self::Typing { session_id, is_typing },
            WirePush::OfflineNotice => Self::OfflineNotice,
            WirePush::Read { session_id, seq } => Self::Read { session_id, seq },
            WirePush::Page { session_id, url, title, language, time } => {
                let page =
                    PageView::new(url, title, language).map_err(|_| Unreadable::Malformed)?;
                Self::Page { session_id, page: Arc::new(page), time }
            }
        })
    }
}

fn status(text: &str) -> Result<MessageStatus, Unreadable> {
    MessageStatus::from_text(text).ok_or(Unreadable::Malformed)
}

#[cfg(test)]
mod tests;
