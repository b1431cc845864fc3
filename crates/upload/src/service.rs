//! Storing, opening and sweeping images: the order of blob and row.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kefu_core::limit::MAX_UPLOAD_BYTES;
use kefu_core::{Clock, Person, SessionId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::error::UploadError;
use crate::format::ImageFormat;
use crate::ledger::{UploadLedger, UploadRow};
use crate::link::LinkSigner;
use crate::path::UploadPath;
use crate::receive::{FileBuffer, FileTooLarge, fits};
use crate::sanitize::{CleanImage, ImageError, sanitize};
use crate::store::{BlobEntry, BlobStore};

/// What has neither row nor message after this long is deleted (U1).
const KEEP_UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// Rows without a message that one sweep takes.
const SWEEP_ROWS: u32 = 128;
/// Blobs that one sweep looks at.
const SWEEP_BLOBS: usize = 256;

/// Images of chats. Who may upload and read is decided before these methods are called.
#[derive(Debug)]
pub struct Uploads {
    blobs: Arc<dyn BlobStore>,
    ledger: Arc<dyn UploadLedger>,
    signer: LinkSigner,
    clock: Arc<dyn Clock>,
    max_bytes: u64,
    /// The last blob that a sweep looked at; the next one goes on behind it.
    swept_to: Mutex<Option<UploadPath>>,
}

/// An image that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUpload {
    /// Its path: what an image message holds as `content`.
    pub path: UploadPath,
    /// A signed link to it.
    pub url: String,
    /// What it is.
    pub mime: ImageFormat,
    /// Bytes stored; less than were sent when metadata was removed.
    pub size: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

/// An image that is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedUpload {
    /// What it is; the only `Content-Type` to serve it with.
    pub mime: ImageFormat,
    /// The image.
    pub bytes: Bytes,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Rows without a message that were removed, their blobs with them.
    pub rows: usize,
    /// Blobs without a row that were removed.
    pub blobs: usize,
}

impl Uploads {
    /// Accepts files of up to 2,097,152 bytes (CC-18).
    #[must_use]
    pub fn new(
        blobs: Arc<dyn BlobStore>,
        ledger: Arc<dyn UploadLedger>,
        signer: LinkSigner,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let swept_to = Mutex::new(None);
        Self { blobs, ledger, signer, clock, max_bytes: MAX_UPLOAD_BYTES, swept_to }
    }

    /// Accepts files of up to `max_bytes` instead.
    #[must_use]
    pub const fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// An empty buffer for the file of one request.
    #[must_use]
    pub const fn receive(&self) -> FileBuffer {
        FileBuffer::new(self.max_bytes)
    }

    /// Checks and cleans `file`, stores it, and records it for `session_id`.
    ///
    /// Repeating the call stores a second image. To be run to its end once begun, like every write.
    ///
    /// # Errors
    /// [`UploadError::TooLarge`], [`UploadError::Image`]: refused, nothing stored. [`UploadError::Blob`],
    /// [`UploadError::Ledger`]: not usable; whatever was stored is swept.
    pub async fn store(
        &self,
        session_id: SessionId,
        uploader: Person,
        file: Bytes,
    ) -> Result<StoredUpload, UploadError> {
        if !fits(file.len(), self.max_bytes) {
            return Err(FileTooLarge { max_bytes: self.max_bytes }.into());
        }
        // Walking and hashing two megabytes takes milliseconds; sockets must not wait for them.
        let (image, sha256) = tokio::task::spawn_blocking(move || clean_and_hash(&file))
            .await
            .map_err(|error| UploadError::Internal(error.into()))??;
        let CleanImage { format, width, height, bytes } = image;

        let now = self.clock.now();
        let path = UploadPath::generate(now, format);
        let size = bytes.len() as u64;
        // The blob first: a row without its blob would be a message that shows nothing; a blob without its row
        // is only swept (U1).
        self.blobs.put(&path, bytes).await?;
        let row = UploadRow {
            path,
            session_id,
            uploader,
            mime: format,
            size,
            sha256,
            width,
            height,
            created_at: now,
        };
        self.ledger.record(&row).await?;
        let url = self.signer.sign(&path, now);
        Ok(StoredUpload { path, url, mime: format, size, width, height })
    }

    /// A signed link to `path`, for a reader whose access was checked (U1).
    #[must_use]
    pub fn link(&self, path: &UploadPath) -> String {
        self.signer.sign(path, self.clock.now())
    }

    /// The image behind the parts of a link: the URL's path, `exp` in Unix seconds, and `sig`.
    ///
    /// # Errors
    /// [`UploadError::Link`] before anything is looked up, so that a bad link tells nothing;
    /// [`UploadError::NotFound`] for any other path and for an image that is gone.
    pub async fn open(
        &self,
        url_path: &str,
        expires_at: i64,
        signature: &str,
    ) -> Result<OpenedUpload, UploadError> {
        let path: UploadPath = url_path.parse().map_err(|_| UploadError::NotFound)?;
        self.signer.verify(&path, expires_at, signature, self.clock.now())?;
        let bytes = self.blobs.find(&path).await?.ok_or(UploadError::NotFound)?;
        Ok(OpenedUpload { mime: path.format(), bytes })
    }

    /// Deletes images that no message shows 24 hours after their upload, and blobs that never got a row (U1).
    ///
    /// One call does a bounded piece of work and goes on where the last one stopped. Any number of nodes may
    /// sweep at once.
    ///
    /// # Errors
    /// The first [`UploadError::Ledger`] or [`UploadError::Blob`]; what was done stays done.
    pub async fn sweep(&self) -> Result<SweepReport, UploadError> {
        let before = self.clock.now().before(KEEP_UNUSED);
        let rows = self.sweep_rows(before).await?;
        let blobs = self.sweep_blobs(before).await?;
        if rows + blobs > 0 {
            tracing::info!(rows, blobs, "unused images deleted");
        }
        Ok(SweepReport { rows, blobs })
    }

    async fn sweep_rows(&self, before: Timestamp) -> Result<usize, UploadError> {
        let mut forgotten = 0;
        for path in self.ledger.list_orphans(before, SWEEP_ROWS).await? {
            // The row first: once it is gone no message can begin to use the image. A blob that a crash leaves here
            // has no row and is found by the walk over the blobs.
            if self.ledger.forget(&path, before).await? {
                self.blobs.delete(&path).await?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    async fn sweep_blobs(&self, before: Timestamp) -> Result<usize, UploadError> {
        let after = *self.swept_to.lock().unwrap_or_else(PoisonError::into_inner);
        let page = self.blobs.list(after.as_ref(), SWEEP_BLOBS).await?;
        let mut deleted = 0;
        for BlobEntry { path, stored_at } in &page {
            if *stored_at < before && self.ledger.find(path).await?.is_none() {
                self.blobs.delete(path).await?;
                deleted += 1;
            }
        }
        // A short page was the last one: the next sweep begins again.
        let next = page.last().filter(|_| page.len() == SWEEP_BLOBS).map(|entry| entry.path);
        *self.swept_to.lock().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(deleted)
    }
}

fn clean_and_hash(file: &[u8]) -> Result<(CleanImage, [u8; 32]), ImageError> {
    let image = sanitize(file)?;
    let sha256 = Sha256::digest(&image.bytes).into();
    Ok((image, sha256))
}
