//! Receivers of images that count the wrong bytes, or one too many (2.10, CC-18).

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use kefu_core::limit::MAX_UPLOAD_BYTES;
use kefu_core::{Person, SessionId};
use kefu_upload::{FileTooLarge, StoredUpload, UploadError, Uploads};

/// Takes one file of one request, as it arrives.
#[async_trait]
pub trait Receiver: Send + Sync {
    /// Stores the file.
    ///
    /// # Errors
    /// Why it is refused.
    async fn take(
        &self,
        session: SessionId,
        uploader: Person,
        chunks: &[Bytes],
    ) -> Result<StoredUpload, UploadError>;
}

/// The real one: every chunk through the buffer, then the store.
#[async_trait]
impl Receiver for Uploads {
    async fn take(
        &self,
        session: SessionId,
        uploader: Person,
        chunks: &[Bytes],
    ) -> Result<StoredUpload, UploadError> {
        let mut file = self.receive();
        for chunk in chunks {
            file.push(chunk)?;
        }
        self.store(session, uploader, file.into_bytes()).await
    }
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeFlaw {
    /// The limit itself is refused.
    OneTooFew,
    /// One byte above the limit is accepted.
    OneTooMany,
    /// What is stored is measured, after metadata and padding were removed.
    StoredBytes,
    /// Each chunk is measured for itself.
    PerChunk,
    /// The refusal comes after the image was stored.
    RefusedLate,
}

/// A receiver with that flaw over `uploads`, whose own limit must be out of the way.
#[must_use]
pub fn image_size(uploads: Uploads, flaw: SizeFlaw) -> Arc<dyn Receiver> {
    let max_bytes = match flaw {
        SizeFlaw::OneTooFew => MAX_UPLOAD_BYTES - 1,
        SizeFlaw::OneTooMany => MAX_UPLOAD_BYTES + 1,
        SizeFlaw::StoredBytes | SizeFlaw::PerChunk | SizeFlaw::RefusedLate => u64::MAX,
    };
    Arc::new(Broken { uploads: uploads.with_max_bytes(max_bytes), flaw })
}

struct Broken {
    uploads: Uploads,
    flaw: SizeFlaw,
}

#[async_trait]
impl Receiver for Broken {
    async fn take(
        &self,
        session: SessionId,
        uploader: Person,
        chunks: &[Bytes],
    ) -> Result<StoredUpload, UploadError> {
        let stored = self.uploads.take(session, uploader, chunks).await?;
        let largest = chunks.iter().map(Bytes::len).max().unwrap_or(0) as u64;
        let measured = match self.flaw {
            SizeFlaw::OneTooFew | SizeFlaw::OneTooMany => 0,
            SizeFlaw::StoredBytes => stored.size,
            SizeFlaw::PerChunk => largest,
            SizeFlaw::RefusedLate => chunks.iter().map(Bytes::len).sum::<usize>() as u64,
        };
        if measured > MAX_UPLOAD_BYTES {
            return Err(FileTooLarge { max_bytes: MAX_UPLOAD_BYTES }.into());
        }
        Ok(stored)
    }
}
