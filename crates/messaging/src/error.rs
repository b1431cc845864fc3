//! Why a message or a report was not taken.

use kefu_core::ErrorCode;
use kefu_session::Refusal;

use crate::SubmitError;

/// Why a message is not stored, or a report not taken. Repeating either is harmless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessagingError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was not queued, or the store failed.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl MessagingError {
    /// The code a client sees.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Submit(SubmitError::Overloaded) => ErrorCode::Overloaded,
            Self::Submit(SubmitError::Closed) => ErrorCode::Unavailable,
            Self::Submit(SubmitError::Store(fault)) => fault.code(),
        }
    }
}
