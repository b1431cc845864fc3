//! The one entrance for file contents: recognise, check, and drop what a viewer does not need.

use bytes::Bytes;
use kefu_core::limit::MAX_IMAGE_SIDE;

use crate::format::ImageFormat;
use crate::{gif, jpeg, png};

/// An image that may be stored and served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanImage {
    /// What the bytes are.
    pub format: ImageFormat,
    /// Pixels, as the header states them (before any orientation is applied).
    pub width: u32,
    /// Pixels, as the header states them (before any orientation is applied).
    pub height: u32,
    /// The file without metadata and without anything behind its end.
    pub bytes: Bytes,
}

/// Why bytes are not an acceptable image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The bytes begin like none of the accepted formats.
    #[error("only jpg, png and gif images are accepted")]
    UnknownFormat,
    /// The file ends before its format says so.
    #[error("the image is incomplete")]
    Truncated,
    /// The file breaks a rule of its format.
    #[error("the image is damaged: {0}")]
    Malformed(&'static str),
    /// A side is longer than 8,192 pixels (B102).
    #[error("the image is {width} x {height} pixels, but at most 8192 x 8192 are accepted")]
    TooManyPixels {
        /// Stated width.
        width: u32,
        /// Stated height.
        height: u32,
    },
}

/// Checks `file` and returns it without metadata.
///
/// The type is taken from the content alone. The pass is linear in the size of the file and decodes no
/// pixel, so a small file that would decode to a huge picture costs nothing (B102). Kept blocks
/// are copied byte for byte; of EXIF data only the orientation survives.
///
/// # Errors
/// [`ImageError`] when the file is not a whole JPEG, PNG or GIF image or has too many pixels.
pub fn sanitize(file: &[u8]) -> Result<CleanImage, ImageError> {
    let format = ImageFormat::sniff(file).ok_or(ImageError::UnknownFormat)?;
    let (Dimensions { width, height }, bytes) = match format {
        ImageFormat::Jpeg => jpeg::sanitize(file),
        ImageFormat::Png => png::sanitize(file),
        ImageFormat::Gif => gif::sanitize(file),
    }?;
    Ok(CleanImage { format, width, height, bytes: bytes.into() })
}

/// Sides that were checked: each 1 … [`MAX_IMAGE_SIDE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dimensions {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Dimensions {
    pub(crate) const fn checked(width: u32, height: u32) -> Result<Self, ImageError> {
        if width == 0 || height == 0 {
            return Err(ImageError::Malformed("a side of zero pixels"));
        }
        if width > MAX_IMAGE_SIDE || height > MAX_IMAGE_SIDE {
            return Err(ImageError::TooManyPixels { width, height });
        }
        Ok(Self { width, height })
    }
}
