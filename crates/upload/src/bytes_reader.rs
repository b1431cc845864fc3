//! A cursor over a file in memory that never reads past its end.

use crate::sanitize::ImageError;

/// Reads forward through `data`; every read past the end is [`ImageError::Truncated`].
#[derive(Debug, Clone)]
pub(crate) struct BytesReader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> BytesReader<'a> {
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], ImageError> {
        let taken = self.rest().get(..len).ok_or(ImageError::Truncated)?;
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let (taken, _) = self.rest().split_first_chunk::<N>().ok_or(ImageError::Truncated)?;
        self.at += N;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ImageError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn be16(&mut self) -> Result<u16, ImageError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn le16(&mut self) -> Result<u16, ImageError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn be32(&mut self) -> Result<u32, ImageError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Where the next read begins; for [`Self::since`].
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// Everything read since `position`.
    pub(crate) fn since(&self, position: usize) -> &'a [u8] {
        self.data.get(position..self.at).unwrap_or_default()
    }
}
