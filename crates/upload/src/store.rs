//! The port to where images are kept.

use std::error::Error;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use kefu_core::Timestamp;

use crate::path::UploadPath;

/// Keeps the bytes of images.
///
/// # Contract
/// - **Atomic**: [`put`](Self::put) stores the whole image or nothing; no reader sees a part of it. When it has
///   returned, the image survives the loss of the process and, where the medium allows, of the machine.
/// - **Idempotent**: `put` of a stored path replaces its bytes; [`delete`](Self::delete) of a missing one succeeds.
/// - **Order**: [`list`](Self::list) goes by path, the oldest day first. An image stored before the call and not
///   deleted during it is listed; what does not have the shape of an upload is skipped.
///
/// # Errors
/// [`BlobError::Unavailable`] when the medium cannot do it now: full, unwritable, unreachable. A failed `put` may have
/// stored the image all the same; without a row it is swept (U1).
/// [`BlobError::Internal`] when trying again cannot help.
#[async_trait]
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Stores `bytes` under `path`.
    async fn put(&self, path: &UploadPath, bytes: Bytes) -> Result<(), BlobError>;

    /// The bytes under `path`, `None` without such an image.
    async fn find(&self, path: &UploadPath) -> Result<Option<Bytes>, BlobError>;

    /// Removes the image under `path`.
    async fn delete(&self, path: &UploadPath) -> Result<(), BlobError>;

    /// The first `limit` images behind `after`, or from the beginning; fewer when there are no more.
    async fn list(
        &self,
        after: Option<&UploadPath>,
        limit: usize,
    ) -> Result<Vec<BlobEntry>, BlobError>;
}

/// One stored image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobEntry {
    /// Its path.
    pub path: UploadPath,
    /// When it was stored, by the medium's clock.
    pub stored_at: Timestamp,
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Not now: the medium is full, unwritable or out of reach.
    #[error("image storage is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// Never: the store is set up wrongly or broken.
    #[error("image storage failed")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}
