//! The stable error codes of the wire (`protocol.md`) and what a caller may do about each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Stable text of an error, as clients see it. Append only; never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is its own wire text; protocol.md explains them")]
pub enum ErrorCode {
    BadRequest,
    UnknownEvent,
    Unauthenticated,
    TokenExpired,
    Forbidden,
    NotFound,
    SessionClosed,
    ContentEmpty,
    ContentTooLong,
    Conflict,
    AgentUnavailable,
    RateLimited,
    Overloaded,
    Unavailable,
    PayloadTooLarge,
    UnsupportedMediaType,
    Internal,
}

/// What the caller of a refused request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryClass {
    /// The same request will be refused again.
    Never,
    /// The same request, with the same key, is safe and may succeed later.
    SameKey,
    /// A fresh token is needed first.
    AfterLogin,
}

impl ErrorCode {
    /// Every code, in the order of `protocol.md`.
    pub const ALL: [Self; 17] = [
        Self::BadRequest,
        Self::UnknownEvent,
        Self::Unauthenticated,
        Self::TokenExpired,
        Self::Forbidden,
        Self::NotFound,
        Self::SessionClosed,
        Self::ContentEmpty,
        Self::ContentTooLong,
        Self::Conflict,
        Self::AgentUnavailable,
        Self::RateLimited,
        Self::Overloaded,
        Self::Unavailable,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::Internal,
    ];

    /// The wire text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::UnknownEvent => "unknown_event",
            Self::Unauthenticated => "unauthenticated",
            Self::TokenExpired => "token_expired",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::SessionClosed => "session_closed",
            Self::ContentEmpty => "content_empty",
            Self::ContentTooLong => "content_too_long",
            Self::Conflict => "conflict",
            Self::AgentUnavailable => "agent_unavailable",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Internal => "internal",
        }
    }

    /// What the caller may do.
    #[must_use]
    pub const fn retry(self) -> RetryClass {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Unavailable => RetryClass::SameKey,
            Self::Unauthenticated | Self::TokenExpired => RetryClass::AfterLogin,
            Self::BadRequest
            | Self::UnknownEvent
            | Self::Forbidden
            | Self::NotFound
            | Self::SessionClosed
            | Self::ContentEmpty
            | Self::ContentTooLong
            | Self::Conflict
            | Self::AgentUnavailable
            | Self::PayloadTooLarge
            | Self::UnsupportedMediaType
            | Self::Internal => RetryClass::Never,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a store fails, the same for every SQL port: what the caller may conclude about the write.
///
/// `reason` is for the log; it never leaves the process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// Certainly not applied: busy, full disk, no connection.
    #[error("store is unavailable: {reason}")]
    Unavailable {
        /// For the log.
        reason: String,
    },
    /// The commit's answer was lost: applied or not. Repeat with the same key.
    #[error("outcome of the commit is unknown: {reason}")]
    Indeterminate {
        /// For the log.
        reason: String,
    },
    /// Certainly not applied, and never will be: a row or a value the store cannot take or read.
    #[error("store refused the data: {reason}")]
    Internal {
        /// For the log.
        reason: String,
    },
}

impl StoreFault {
    /// A fault that says the write was certainly not applied.
    #[must_use]
    pub fn unavailable(reason: impl fmt::Display) -> Self {
        Self::Unavailable { reason: reason.to_string() }
    }

    /// A fault of the data itself.
    #[must_use]
    pub fn internal(reason: impl fmt::Display) -> Self {
        Self::Internal { reason: reason.to_string() }
    }

    /// The code a client sees.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } | Self::Indeterminate { .. } => ErrorCode::Unavailable,
            Self::Internal { .. } => ErrorCode::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct() {
        let texts: std::collections::HashSet<_> =
            ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
    }
}
