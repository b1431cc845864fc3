//! The envelope both ways: `{"event", "payload", "ref"?}`.

use std::fmt;
use std::sync::Arc;

use kefu_core::{ClientMsgId, ErrorCode};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use crate::client::{ClientFrame, UNKNOWN};
use crate::fields::{Fields, Problem};
use crate::server::ServerFrame;

/// Scalar values in a `ref`.
const MAX_REF_CHARS: usize = 64;
/// Room for most frames, so that writing one allocates once.
const FRAME_BYTES: usize = 512;

/// A frame from a client, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// The client's label, for the direct answer.
    pub reference: Option<Ref>,
    /// The frame.
    pub frame: ClientFrame,
}

impl Inbound {
    /// Reads a text frame. `max_chars` is the longest text message (`messaging.max_chars`).
    ///
    /// Unknown fields are ignored, `null` and a left-out field are the same, and so are a missing payload and `{}`.
    ///
    /// # Errors
    /// [`FrameError`], ready to be answered. It carries the frame's `ref` and, for a send, its `clientMsgId`,
    /// whatever else is wrong with it. It never repeats what the client sent.
    pub fn parse(text: &str, max_chars: usize) -> Result<Self, FrameError> {
        let envelope = Envelope::read(text)?;
        let reference = envelope.reference.clone();
        let key = envelope.client_msg_id();
        let frame = envelope.frame(key.clone(), max_chars).map_err(|problem| FrameError {
            code: problem.code,
            message: problem.message,
            client_msg_id: key,
            reference: reference.clone(),
            is_malformed: false,
        })?;
        Ok(Self { reference, frame })
    }
}

/// A frame that is refused before anybody acts on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct FrameError {
    /// What clients match on.
    pub code: ErrorCode,
    /// For people; names the field, never its content.
    pub message: String,
    /// The key of a send or a note, where it could be read.
    pub client_msg_id: Option<ClientMsgId>,
    /// The client's label, where it could be read.
    pub reference: Option<Ref>,
    /// Not JSON or not the envelope: 20 of these in a minute close the connection with 1008.
    pub is_malformed: bool,
}

impl FrameError {
    fn malformed(message: &str, reference: Option<Ref>) -> Self {
        Self {
            code: ErrorCode::BadRequest,
            message: message.to_owned(),
            client_msg_id: None,
            reference,
            is_malformed: true,
        }
    }
}

/// The envelope's parts, with the event known to be one of ours.
struct Envelope {
    event: String,
    payload: Map<String, Value>,
    reference: Option<Ref>,
}

impl Envelope {
    fn read(text: &str) -> Result<Self, FrameError> {
        let value = serde_json::from_str(text)
            .map_err(|_| FrameError::malformed("frame is not valid JSON", None))?;
        let Value::Object(mut members) = value else {
            return Err(FrameError::malformed("frame must be an object", None));
        };
        let reference = Ref::read(members.remove("ref"));
        let label = reference.clone().unwrap_or_default();
        let Some(Value::String(event)) = members.remove("event") else {
            return Err(FrameError::malformed("event must be a string", label));
        };
        if !ClientFrame::EVENTS.contains(&event.as_str()) {
            return Err(unknown(label));
        }
        let Ok(reference) = reference else {
            let message = "ref must be a string of at most 64 characters";
            return Err(FrameError::malformed(message, None));
        };
        let payload = match members.remove("payload") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(payload)) => payload,
            Some(_) => return Err(FrameError::malformed("payload must be an object", reference)),
        };
        Ok(Self { event, payload, reference })
    }

    /// The key of a send; nothing when it is missing or not a key.
    fn client_msg_id(&self) -> Option<ClientMsgId> {
        let has_key = matches!(self.event.as_str(), "chat.message.send" | "chat.note.add");
        let key = self.payload.get("clientMsgId").filter(|_| has_key)?;
        ClientMsgId::new(key.as_str()?).ok()
    }

    fn frame(self, key: Option<ClientMsgId>, max_chars: usize) -> Result<ClientFrame, Problem> {
        let has_bad_key = key.is_none() && self.payload.contains_key("clientMsgId");
        if has_bad_key && self.event == "chat.message.send" {
            return Err(Problem::bad("clientMsgId must be a string of 1 to 128 characters"));
        }
        ClientFrame::parse(&self.event, &mut Fields::new(self.payload), key, max_chars)
    }
}

/// Another namespace, or a name that `chat.*` does not have (CC-12): answered, and touches nothing.
fn unknown(reference: Option<Ref>) -> FrameError {
    FrameError {
        code: ErrorCode::UnknownEvent,
        message: UNKNOWN.to_owned(),
        client_msg_id: None,
        reference,
        is_malformed: false,
    }
}

/// A client's own label of a frame: at most 64 scalar values. Carried back, never stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ref(Arc<str>);

impl Ref {
    /// Wraps a label; `None` when it is too long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        text.chars().nth(MAX_REF_CHARS).is_none().then(|| Self(text.into()))
    }

    /// The label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(value: Option<Value>) -> Result<Option<Self>, NotARef> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Self::new(&text).map(Some).ok_or(NotARef),
            Some(_) => Err(NotARef),
        }
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Ref {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| de::Error::custom("ref is too long"))
    }
}

#[derive(Clone, Copy)]
struct NotARef;

/// A frame from the server with the label of what it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    /// The label of the frame that this one answers.
    pub reference: Option<Ref>,
    /// The frame.
    pub frame: ServerFrame,
}

impl Outbound {
    /// Reads a frame as a client does.
    ///
    /// # Errors
    /// When it is not a frame of this contract.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Label {
            #[serde(rename = "ref")]
            reference: Option<Ref>,
        }
        let Label { reference } = serde_json::from_str(text)?;
        Ok(Self { reference, frame: serde_json::from_str(text)? })
    }
}

#[derive(Serialize)]
struct Labelled<'a, F> {
    #[serde(flatten)]
    frame: &'a F,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
}

/// Writes a frame as text.
#[expect(
    clippy::expect_used,
    reason = "frames hold strings, numbers and string-keyed maps, and JSON is UTF-8: neither step can fail"
)]
fn encode<F: Serialize>(frame: &F, reference: Option<&str>) -> String {
    let mut bytes = Vec::with_capacity(FRAME_BYTES);
    serde_json::to_writer(&mut bytes, &Labelled { frame, reference })
        .expect("a frame is representable as JSON");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

impl ClientFrame {
    /// The text of the frame.
    #[must_use]
    pub fn encode(&self, reference: Option<&str>) -> String {
        encode(self, reference)
    }
}

impl ServerFrame {
    /// The text of the frame; with the label of what it answers.
    #[must_use]
    pub fn encode(&self, reference: Option<&str>) -> String {
        encode(self, reference)
    }
}
