//! Why a use case failed, and the one translation to a wire code.

use kefu_assignment::AssignmentError;
use kefu_core::{ErrorCode, StoreFault, TextError};
use kefu_messaging::MessagingError;
use kefu_session::Refusal;
use kefu_upload::UploadError;

/// Why a use case failed.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A text breaks its rule (M1, T4).
    #[error(transparent)]
    Text(#[from] TextError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// An assignment failed.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// A send or a report failed.
    #[error(transparent)]
    Messaging(#[from] MessagingError),
    /// An upload failed.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// The person has as many connections as allowed (L2): close 4005.
    #[error("too many connections of one person")]
    TooManyConnections,
    /// A bounded queue is full.
    #[error("too many requests are waiting")]
    Overloaded,
}

impl DeskError {
    /// The code a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Text(TextError::Empty) => ErrorCode::ContentEmpty,
            Self::Text(TextError::TooLong { .. }) => ErrorCode::ContentTooLong,
            Self::Text(TextError::Control) => ErrorCode::BadRequest,
            Self::Store(fault) => fault.code(),
            Self::Assignment(error) => error.code(),
            Self::Messaging(error) => error.code(),
            Self::Upload(error) => error.code(),
            Self::TooManyConnections => ErrorCode::RateLimited,
            Self::Overloaded => ErrorCode::Overloaded,
        }
    }

    /// What a client may be told besides the code: never a reason from a store.
    #[must_use]
    pub fn outward(&self) -> String {
        match self.code() {
            ErrorCode::Unavailable => "the store is unavailable, nothing was acknowledged".into(),
            ErrorCode::Internal => "the request could not be processed".into(),
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
            | ErrorCode::RateLimited
            | ErrorCode::Overloaded
            | ErrorCode::PayloadTooLarge
            | ErrorCode::UnsupportedMediaType => self.to_string(),
        }
    }
}
