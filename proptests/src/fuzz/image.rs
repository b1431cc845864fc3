//! Image files: what `sanitize` accepts it accepts again unchanged, and nothing is left in it but what
//! draws the picture. What is left is looked at by walks of its own.

use kefu_core::ErrorCode;
use kefu_core::limit::MAX_IMAGE_SIDE;
use kefu_upload::{CleanImage, ImageError, ImageFormat, UploadError, sanitize};

use super::Shape;
use crate::{Violation, ensure};

/// The check under test.
pub type Sanitize = fn(&[u8]) -> Result<CleanImage, ImageError>;

/// Image files.
pub const SHAPE: Shape = Shape {
    name: "image",
    words: &[
        b"\xff\xd8\xff",
        b"\xff\xd9",
        b"\xff\xe1\x00\x0aExif\0\0MM",
        b"\xff\xfe\x00\x04hi",
        b"\xff\x00",
        b"\xff\xda",
        b"\0\0\0\0tEXt\0\0\0\0",
        b"\0\0\0\0eXIf\0\0\0\0",
        b"\0\0\0\0IEND\xaeB`\x82",
        b"\x21\xfe\x02hi\0",
        b"\x21\xff\x0bXMP DataXMP\x01a\0",
        b";",
        b"\x2c",
        b"\xff\xff\xff\xff",
        b"\x7f\xff",
        b"\0",
    ],
    mended: with_checksums,
};

/// Of a file, only the orientation may be written anew: a TIFF block of 26 bytes with its frame.
const ADDED: usize = 64;
const TIFF: usize = 26;
const PNG_HEAD: usize = 8;

/// Checks the real sanitizer.
///
/// # Errors
/// What does not hold.
pub fn target(data: &[u8]) -> Result<(), Violation> {
    check(sanitize, data)
}

/// Checks any sanitizer.
///
/// # Errors
/// What does not hold.
pub fn check(sanitize: Sanitize, data: &[u8]) -> Result<(), Violation> {
    let clean = match sanitize(data) {
        Ok(clean) => clean,
        Err(error) => {
            let code = UploadError::from(error).code();
            let is_known = [ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType];
            return ensure(is_known.contains(&code), || format!("code: {code}"));
        }
    };
    let CleanImage { format, width, height, bytes } = &clean;
    ensure(ImageFormat::sniff(bytes) == Some(*format), || format!("format: not {format}"))?;
    let sides = 1..=MAX_IMAGE_SIDE;
    ensure(sides.contains(width) && sides.contains(height), || format!("{width} x {height}"))?;
    ensure(bytes.len() <= data.len() + ADDED, || format!("it grew to {} bytes", bytes.len()))?;
    let left = match format {
        ImageFormat::Jpeg => jpeg(bytes),
        ImageFormat::Png => png(bytes),
        ImageFormat::Gif => gif(bytes),
    };
    let left = left.ok_or_else(|| Violation::new("structure: it ends in the middle"))?;
    ensure(left.is_empty(), || format!("metadata: {left:?} is left"))?;
    let again = sanitize(bytes);
    ensure(again.as_ref() == Ok(&clean), || format!("a second time it gives {again:?}"))
}

/// A block that says one thing, the orientation.
fn is_orientation(tiff: &[u8]) -> bool {
    tiff.len() == TIFF && tiff.starts_with(b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12")
}

/// What should not be there; `None` when the walk does not end with the file.
fn jpeg(file: &[u8]) -> Option<Vec<String>> {
    let mut left = Vec::new();
    let mut at = 2;
    loop {
        let (marker, start) = (*file.get(at + 1)?, at + 2);
        if file.get(at) != Some(&0xff) {
            return None;
        }
        if marker == 0xd9 {
            return (start == file.len()).then_some(left);
        }
        let len = usize::from(u16::from_be_bytes(*file.get(start..)?.first_chunk()?));
        let payload = file.get(start + 2..start + len)?;
        let is_wanted = match marker {
            0xe0 => payload.len() == 14,
            0xe1 => payload.strip_prefix(b"Exif\0\0").is_some_and(is_orientation),
            0xe2 => payload.starts_with(b"ICC_PROFILE\0"),
            0xee => payload.len() == 12,
            0xe3..=0xef | 0xfe => false,
            _ => true,
        };
        if !is_wanted {
            left.push(format!("segment {marker:x}"));
        }
        at = start + len;
        if marker == 0xda {
            let data = file.get(at..)?.windows(2);
            at += data
                .into_iter()
                .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7))?;
        }
    }
}

fn png(file: &[u8]) -> Option<Vec<String>> {
    let mut left = Vec::new();
    let mut at = PNG_HEAD;
    loop {
        let len = u32::from_be_bytes(*file.get(at..)?.first_chunk()?);
        let end = at + 12 + usize::try_from(len).ok()?;
        let (kind, data) = (file.get(at + 4..at + 8)?, file.get(at + 8..end - 4)?);
        let is_wanted = match kind {
            b"eXIf" => is_orientation(data),
            b"tEXt" | b"zTXt" | b"iTXt" | b"tIME" | b"dSIG" | b"sPLT" => false,
            _ => true,
        };
        if !is_wanted {
            left.push(kind.escape_ascii().to_string());
        }
        if kind == b"IEND" {
            return (end == file.len()).then_some(left);
        }
        at = end;
    }
}

fn gif(file: &[u8]) -> Option<Vec<String>> {
    let mut left = Vec::new();
    let mut at = 13 + colours(*file.get(10)?);
    loop {
        match *file.get(at)? {
            0x3b => return (at + 1 == file.len()).then_some(left),
            0x2c => at = sub_blocks(file, at + 11 + colours(*file.get(at + 9)?))?,
            0x21 => {
                let label = *file.get(at + 1)?;
                let end = sub_blocks(file, at + 2)?;
                let block = file.get(at..end)?;
                let is_loop = block.len() == 19
                    && matches!(block.get(3..14), Some(b"NETSCAPE2.0" | b"ANIMEXTS1.0"));
                if label != 0xf9 && !is_loop {
                    left.push(format!("extension {label:x}"));
                }
                at = end;
            }
            _ => return None,
        }
    }
}

/// Bytes of the colour table that these flags announce.
const fn colours(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 0x07) + 1) }
}

/// Behind the blocks that begin at `at`.
fn sub_blocks(file: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let len = usize::from(*file.get(at)?);
        at += 1 + len;
        if len == 0 {
            return Some(at);
        }
    }
}

/// A PNG with the checksums of its chunks made right, as far as they can be found.
fn with_checksums(mut file: Vec<u8>) -> Vec<u8> {
    let mut at = PNG_HEAD;
    while file.starts_with(b"\x89PNG") {
        let Some(len) = file.get(at..).and_then(|rest| rest.first_chunk()) else { break };
        let end = at + 8 + u32::from_be_bytes(*len) as usize;
        let Some(covered) = file.get(at + 4..end) else { break };
        let checksum = crc32(covered).to_be_bytes();
        let Some(place) = file.get_mut(end..end + 4) else { break };
        place.copy_from_slice(&checksum);
        at = end + 4;
    }
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xedb8_8320 }
        })
    })
}
