//! `chat.error`.

use std::time::Duration;

use kefu_core::{ClientMsgId, ErrorCode, TraceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::FrameError;
use crate::text::{self, ClientKey};

/// Why a frame was refused. Carries no SQL, path, stack or connection string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorFrame {
    /// What clients match on.
    #[schemars(with = "text::ErrorCode")]
    pub code: ErrorCode,
    /// For logs and people; may change.
    pub message: String,
    /// When to try again; always with `rate_limited` and `overloaded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The key of the send that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ClientKey>")]
    pub client_msg_id: Option<ClientMsgId>,
    /// What the server's log calls this refusal.
    #[schemars(with = "String")]
    pub trace_id: TraceId,
}

impl ErrorFrame {
    /// A refusal.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, trace_id: TraceId) -> Self {
        let message = message.into();
        Self { code, message, retry_after_ms: None, client_msg_id: None, trace_id }
    }

    /// The refusal of a frame that could not be read; its `ref` goes into the envelope.
    #[must_use]
    pub fn of_frame(error: &FrameError, trace_id: TraceId) -> Self {
        let refusal = Self::new(error.code, error.message.clone(), trace_id);
        refusal.with_client_msg_id(error.client_msg_id.clone())
    }

    /// With the key of the refused send.
    #[must_use]
    pub fn with_client_msg_id(self, client_msg_id: Option<ClientMsgId>) -> Self {
        Self { client_msg_id, ..self }
    }

    /// With the time after which another attempt makes sense.
    #[must_use]
    pub fn with_retry_after(self, after: Duration) -> Self {
        Self { retry_after_ms: Some(whole_millis(after)), ..self }
    }
}

/// Rounded up: a client that comes back a fraction too early is refused again.
pub(crate) fn whole_millis(after: Duration) -> u64 {
    u64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
