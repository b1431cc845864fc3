//! The one translation of a use case's error to what a client may know.

use std::time::Duration;

use kefu_core::{ErrorCode, TraceId};
use kefu_desk::DeskError;

/// When to come back after `overloaded` or `unavailable`: long enough for a queue to drain, short
/// enough not to be felt.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A refusal as it leaves the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

/// Translates an error, and logs it if it is the server's: once, here, with the trace the client gets.
pub(crate) fn explain(error: &DeskError, trace: &TraceId) -> Refusal {
    let code = error.code();
    let retry_after = match code {
        ErrorCode::RateLimited | ErrorCode::Overloaded | ErrorCode::Unavailable => {
            Some(RETRY_AFTER)
        }
        ErrorCode::BadRequest
        | ErrorCode::UnknownEvent
        | ErrorCode::Unauthenticated
        | ErrorCode::TokenExpired
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::SessionClosed
        | ErrorCode::ContentEmpty
        | ErrorCode::ContentTooLong
        | ErrorCode::Conflict
        | ErrorCode::AgentUnavailable
        | ErrorCode::PayloadTooLarge
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::Internal => None,
    };
    match code {
        ErrorCode::Unavailable => tracing::warn!(trace_id = %trace, %error, "request failed"),
        ErrorCode::Internal => tracing::error!(trace_id = %trace, %error, "request failed"),
        _ => tracing::debug!(trace_id = %trace, %code, "request refused"),
    }
    Refusal { code, message: error.outward(), retry_after }
}
