//! The three accepted image formats and how their bytes begin.

use std::fmt;

/// An accepted image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageFormat {
    /// Baseline or progressive JPEG.
    Jpeg,
    /// PNG, animated ones included.
    Png,
    /// GIF, animated ones included.
    Gif,
}

impl ImageFormat {
    /// Every accepted format.
    pub const ALL: [Self; 3] = [Self::Jpeg, Self::Png, Self::Gif];

    /// The format that `bytes` begin with, whatever the file was called (B97).
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// The value of `Content-Type`, `mimeType` and the ledger's `mime`.
    #[must_use]
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
        }
    }

    /// The format of a [`Self::mime`] text.
    #[must_use]
    pub fn from_mime(mime: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.mime() == mime)
    }

    /// The extension in a server-made name, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Gif => "gif",
        }
    }

    /// The format of an [`Self::extension`].
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension() == extension)
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for format in ImageFormat::ALL {
            assert_eq!(ImageFormat::from_mime(format.mime()), Some(format));
            assert_eq!(ImageFormat::from_extension(format.extension()), Some(format));
        }
        assert_eq!(ImageFormat::from_mime("image/svg+xml"), None);
        assert_eq!(ImageFormat::from_extension("PNG"), None);
    }

    #[test]
    fn only_the_three_formats_are_recognised() {
        for other in [
            &b""[..],
            b"<html>",
            b"<svg xmlns=\"http://www.w3.org/2000/svg\">",
            b"GIF88a",
            b"\x89PNG",
            b"RIFF\0\0\0\0WEBP",
            b"BM",
            b" GIF89a",
        ] {
            assert_eq!(ImageFormat::sniff(other), None, "{other:?}");
        }
    }
}
