//! Bodies of the HTTP calls.

use std::time::Duration;

use kefu_core::{ErrorCode, PageLimit, Role, Seq, TraceId};
use kefu_messaging::Window;
use kefu_upload::StoredUpload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::{InvalidWindow, window};
use crate::server::error::whole_millis;
use crate::server::message::History;
use crate::text::{self, PersonId, ShortText};

/// 201 of `POST /api/v1/uploads`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadAnswer {
    /// A signed link that expires; the `content` of an image message.
    pub url: String,
    /// By content: `image/jpeg`, `image/png` or `image/gif`.
    pub mime_type: String,
    /// Bytes stored; less than were sent when metadata was removed.
    pub size: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

impl From<&StoredUpload> for UploadAnswer {
    fn from(stored: &StoredUpload) -> Self {
        Self {
            url: stored.url.clone(),
            mime_type: stored.mime.mime().to_owned(),
            size: stored.size,
            width: stored.width,
            height: stored.height,
        }
    }
}

/// The query of `GET /api/v1/sessions/{id}/messages`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesQuery {
    /// The first messages above this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<Seq>,
    /// The last messages below this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_seq: Option<Seq>,
    /// 1 … 50, 50 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl MessagesQuery {
    /// What is asked for; the latest page without a position.
    ///
    /// # Errors
    /// [`InvalidWindow`], answered with `bad_request`.
    pub fn window(self) -> Result<(Window, PageLimit), InvalidWindow> {
        window(self.after_seq, self.before_seq, self.limit)
    }
}

/// 200 of `GET /api/v1/sessions/{id}/messages`: the same page as `chat.history`.
pub type MessagesPage = History;

/// Every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong. Carries no SQL, path, stack or connection string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetail {
    /// What clients match on.
    #[schemars(with = "text::ErrorCode")]
    pub code: ErrorCode,
    /// For logs and people; may change.
    pub message: String,
    /// What the server's log calls this refusal.
    #[schemars(with = "String")]
    pub trace_id: TraceId,
    /// When to try again; always with `rate_limited` and `overloaded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ErrorBody {
    /// A refusal.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, trace_id: TraceId) -> Self {
        let message = message.into();
        Self { error: ErrorDetail { code, message, trace_id, retry_after_ms: None } }
    }

    /// With the time after which another attempt makes sense.
    #[must_use]
    pub fn with_retry_after(self, after: Duration) -> Self {
        let retry_after_ms = Some(whole_millis(after));
        Self { error: ErrorDetail { retry_after_ms, ..self.error } }
    }
}

/// The HTTP status of a code.
#[must_use]
pub const fn status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::BadRequest
        | ErrorCode::UnknownEvent
        | ErrorCode::ContentEmpty
        | ErrorCode::ContentTooLong => 400,
        ErrorCode::Unauthenticated | ErrorCode::TokenExpired => 401,
        ErrorCode::Forbidden => 403,
        ErrorCode::NotFound => 404,
        ErrorCode::SessionClosed | ErrorCode::Conflict | ErrorCode::AgentUnavailable => 409,
        ErrorCode::PayloadTooLarge => 413,
        ErrorCode::UnsupportedMediaType => 415,
        ErrorCode::RateLimited => 429,
        ErrorCode::Overloaded | ErrorCode::Unavailable => 503,
        ErrorCode::Internal => 500,
    }
}

/// The body of `POST /demo/token`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DemoTokenRequest {
    /// Whose token.
    #[schemars(with = "text::Role")]
    pub role: Role,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ShortText>")]
    pub name: Option<String>,
}

/// 200 of `POST /demo/token`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DemoTokenAnswer {
    /// A signed token.
    pub token: String,
    /// The id in it.
    #[schemars(with = "PersonId")]
    pub sub: String,
}
