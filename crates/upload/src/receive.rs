//! The bytes of a file as they arrive, refused as soon as they are too many.

use bytes::Bytes;

/// Collects one file from a stream (CC-18).
///
/// Only the bytes of the file count, not the form around it. After a refusal the buffer is empty and stays refused.
#[derive(Debug)]
pub struct FileBuffer {
    bytes: Vec<u8>,
    max_bytes: u64,
    is_refused: bool,
}

/// The file has more bytes than are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is larger than {max_bytes} bytes")]
pub struct FileTooLarge {
    /// The most that is accepted.
    pub max_bytes: u64,
}

impl FileBuffer {
    /// Accepts up to `max_bytes`, that many included.
    #[must_use]
    pub const fn new(max_bytes: u64) -> Self {
        Self { bytes: Vec::new(), max_bytes, is_refused: false }
    }

    /// Adds the next chunk of the file.
    ///
    /// # Errors
    /// [`FileTooLarge`] with the chunk that crosses the limit, which is not buffered, and with every later
    /// one. The caller stops reading.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), FileTooLarge> {
        if self.is_refused || !fits(self.bytes.len() + chunk.len(), self.max_bytes) {
            self.is_refused = true;
            self.bytes = Vec::new();
            return Err(FileTooLarge { max_bytes: self.max_bytes });
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// What arrived; empty after a refusal.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// Whether a file of `len` bytes is within `max_bytes`.
pub(crate) fn fits(len: usize, max_bytes: u64) -> bool {
    u64::try_from(len).is_ok_and(|len| len <= max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = kefu_core::limit::MAX_UPLOAD_BYTES;

    #[test]
    fn exactly_the_limit_is_accepted_in_any_chunking() {
        for chunk in [1 << 10, 1 << 16, 2_097_152] {
            let mut file = FileBuffer::new(MAX);
            let bytes = vec![7; chunk];
            (0..2_097_152 / chunk).for_each(|_| file.push(&bytes).unwrap());
            assert_eq!(file.into_bytes().len(), 2_097_152);
        }
    }

    #[test]
    fn one_byte_more_is_refused_and_nothing_is_kept() {
        let mut file = FileBuffer::new(MAX);
        file.push(&vec![7; 2_097_152]).unwrap();
        assert_eq!(file.push(&[7]), Err(FileTooLarge { max_bytes: MAX }));
        assert_eq!(file.bytes.capacity(), 0);
        assert_eq!(file.push(&[]), Err(FileTooLarge { max_bytes: MAX }));
        assert!(file.into_bytes().is_empty());
    }

    #[test]
    fn a_chunk_that_is_too_large_is_never_copied() {
        let mut file = FileBuffer::new(MAX);
        assert!(file.push(&vec![7; 2_097_153]).is_err());
        assert_eq!(file.bytes.capacity(), 0);
    }
}
