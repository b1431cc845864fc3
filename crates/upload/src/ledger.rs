//! The port to the record of uploads (table `cg_chat_upload`).

use std::fmt;

use async_trait::async_trait;
use kefu_core::{Person, SessionId, StoreFault, Timestamp};

use crate::format::ImageFormat;
use crate::path::UploadPath;

/// Knows which image was uploaded where and by whom, and whether a message shows it.
///
/// The row is what makes an image usable: an image message is accepted only for a path that this ledger has under the
/// message's session (M1), and the append checks that inside its own transaction.
///
/// # Contract
/// - **Order**: a row is recorded after its blob is stored (U1), so a row always has its blob.
/// - **Idempotent**: [`record`](Self::record) of a recorded path changes nothing and succeeds.
/// - **Atomic**: [`forget`](Self::forget) checks and deletes in one transaction, exclusive of appends that refer to the
///   path: either the message is stored and the row stays, or the row is gone and the append is refused.
/// - [`list_orphans`](Self::list_orphans) gives the oldest first and may be out of date when it returns;
///   `forget` decides.
///
/// # Errors
/// [`StoreFault`]; reads are never `Indeterminate`. Repeating a call whose outcome is unknown is safe.
#[async_trait]
pub trait UploadLedger: Send + Sync + fmt::Debug {
    /// Records an upload whose blob is stored.
    async fn record(&self, row: &UploadRow) -> Result<(), StoreFault>;

    /// The row of `path`.
    async fn find(&self, path: &UploadPath) -> Result<Option<UploadRow>, StoreFault>;

    /// Up to `limit` paths recorded before `created_before` that no message has as its content.
    async fn list_orphans(
        &self,
        created_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadPath>, StoreFault>;

    /// Deletes the row of `path` if it was recorded before `created_before` and no message has the path as its
    /// content. Whether there is no row afterwards: `true` also when there was none.
    async fn forget(
        &self,
        path: &UploadPath,
        created_before: Timestamp,
    ) -> Result<bool, StoreFault>;
}

/// One upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRow {
    /// The key.
    pub path: UploadPath,
    /// The session in whose messages the image may be shown.
    pub session_id: SessionId,
    /// Who uploaded it.
    pub uploader: Person,
    /// What the bytes are.
    pub mime: ImageFormat,
    /// Bytes stored (after metadata was removed).
    pub size: u64,
    /// SHA-256 of the bytes stored.
    pub sha256: [u8; 32],
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// When it was uploaded.
    pub created_at: Timestamp,
}
