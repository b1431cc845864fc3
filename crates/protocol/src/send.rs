//! `chat.message.send`: what may be said (M1).

use std::borrow::Cow;

use kefu_core::text::{TextError, check_message_text};
use kefu_core::{ClientMsgId, SessionId};
use kefu_messaging::Draft;
use kefu_upload::UploadPath;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::fields::{Fields, Problem, Required as _};
use crate::text::{ClientKey, DecimalId, optional_decimal};
use crate::vocabulary::MessageType;

/// Scalar values in the link of an image: host, path, expiry and signature leave much room.
const MAX_LINK_CHARS: usize = 2_048;

/// A message to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendMessage {
    /// The session; a user may leave it out and means their open one.
    pub session_id: Option<SessionId>,
    /// Type and content, checked. An image's link is reduced to its path (M1).
    pub draft: Draft,
    /// The key that makes a repeat harmless (T2).
    pub client_msg_id: ClientMsgId,
}

impl SendMessage {
    pub(crate) fn parse(
        fields: &mut Fields,
        client_msg_id: Option<ClientMsgId>,
        max_chars: usize,
    ) -> Result<Self, Problem> {
        Ok(Self {
            client_msg_id: Ok(client_msg_id).required("clientMsgId")?,
            session_id: fields.id("sessionId")?,
            draft: draft(fields, max_chars)?,
        })
    }
}

fn draft(fields: &mut Fields, max_chars: usize) -> Result<Draft, Problem> {
    let msg_type = fields.word("msgType", "text or image").required("msgType")?;
    let content = fields.text("content").required("content")?;
    match msg_type {
        MessageType::Text => {
            check_message_text(&content, max_chars).map_err(Problem::content)?;
            Ok(Draft::Text(content))
        }
        MessageType::Image => image(&content),
    }
}

/// Whether the image belongs to the session is decided where it is stored.
fn image(link: &str) -> Result<Draft, Problem> {
    if link.is_empty() {
        return Err(Problem::content(TextError::Empty));
    }
    if link.chars().nth(MAX_LINK_CHARS).is_some() {
        return Err(Problem::content(TextError::TooLong { max: MAX_LINK_CHARS }));
    }
    let path = UploadPath::parse_url(link);
    path.map(Draft::Image)
        .ok_or_else(|| Problem::bad("content is not the url of an uploaded image"))
}

/// A message to be stored.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SendMessage")]
struct SendShape<'a> {
    /// The session; a user may leave it out and means their open one.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<DecimalId>")]
    session_id: Option<SessionId>,
    /// What `content` is.
    msg_type: MessageType,
    /// 1 to `limits.maxChars` characters of text, or the `url` that an upload into the same session answered.
    content: Cow<'a, str>,
    /// The same key again is the same message: same answer, no second row, no second push.
    #[schemars(with = "ClientKey")]
    client_msg_id: &'a ClientMsgId,
}

impl Serialize for SendMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (msg_type, content) = match &self.draft {
            Draft::Text(text) => (MessageType::Text, Cow::Borrowed(text.as_str())),
            Draft::Image(path) => (MessageType::Image, Cow::Owned(path.to_string())),
        };
        let Self { session_id, client_msg_id, .. } = self;
        SendShape { session_id: *session_id, msg_type, content, client_msg_id }
            .serialize(serializer)
    }
}

impl JsonSchema for SendMessage {
    fn schema_name() -> Cow<'static, str> {
        SendShape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SendShape::json_schema(generator)
    }
}
