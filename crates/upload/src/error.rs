//! What can go wrong with an upload, and its code on the wire.

use std::error::Error;

use kefu_core::{ErrorCode, StoreFault};

use crate::link::LinkError;
use crate::receive::FileTooLarge;
use crate::sanitize::ImageError;
use crate::store::BlobError;

/// Why an image was not stored or not opened. The text of each is fit for clients.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// Too many bytes.
    #[error(transparent)]
    TooLarge(#[from] FileTooLarge),
    /// Not an acceptable image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A link that opens nothing.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No such image.
    #[error("no such image")]
    NotFound,
    /// The blob store.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The ledger.
    #[error("the upload could not be recorded or looked up")]
    Ledger(#[from] StoreFault),
    /// A defect of kefu.
    #[error("the image could not be processed")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

impl UploadError {
    /// The code that clients are told.
    ///
    /// Too many pixels are `payload_too_large`: the bytes *are* a picture, only too large a one. A commit whose answer was
    /// lost is `unavailable`: a further attempt makes a further image, and the unused one is swept (U1).
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TooLarge(_) | Self::Image(ImageError::TooManyPixels { .. }) => {
                ErrorCode::PayloadTooLarge
            }
            Self::Image(
                ImageError::UnknownFormat | ImageError::Truncated | ImageError::Malformed(_),
            ) => ErrorCode::UnsupportedMediaType,
            Self::Link(LinkError::Forged | LinkError::Expired) => ErrorCode::Forbidden,
            Self::NotFound => ErrorCode::NotFound,
            Self::Blob(BlobError::Unavailable(_)) => ErrorCode::Unavailable,
            Self::Ledger(fault) => fault.code(),
            Self::Blob(BlobError::Internal(_)) | Self::Internal(_) => ErrorCode::Internal,
        }
    }
}
