//! Images made in code, and the pieces to put into them.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

/// A picture with some detail, in the given format.
pub(crate) fn encode(format: ImageFormat, width: u32, height: u32) -> Vec<u8> {
    let shade = |x: u32, y: u32| Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]);
    let picture = DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, shade));
    let picture = match format {
        ImageFormat::Gif => DynamicImage::ImageRgba8(picture.to_rgba8()),
        _ => picture,
    };
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

pub(crate) fn pixels(file: &[u8]) -> DynamicImage {
    image::load_from_memory(file).unwrap()
}

pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

pub(crate) fn insert(file: &[u8], at: usize, piece: &[u8]) -> Vec<u8> {
    [&file[..at], piece, &file[at..]].concat()
}

pub(crate) fn jpeg_segment(marker: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len() + 2).unwrap();
    [&[0xff, marker][..], &len.to_be_bytes(), payload].concat()
}

pub(crate) fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let covered = [&kind[..], data].concat();
    let len = u32::try_from(data.len()).unwrap();
    [&len.to_be_bytes()[..], &covered, &crc32(&covered).to_be_bytes()].concat()
}

/// Bit by bit, unlike the table of the crate under test.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 }
        })
    })
}

/// Where the first chunk after the PNG header begins.
pub(crate) const AFTER_IHDR: usize = 8 + 25;

/// A TIFF block as a phone writes it: camera, orientation, and a position.
pub(crate) fn tiff_with_position(orientation: u16) -> Vec<u8> {
    let mut tiff = b"II\x2a\0\x08\0\0\0\x03\0".to_vec();
    let mut entry = |tag: u16, kind: u16, count: u32, value: u32| {
        tiff.extend(tag.to_le_bytes());
        tiff.extend(kind.to_le_bytes());
        tiff.extend(count.to_le_bytes());
        tiff.extend(value.to_le_bytes());
    };
    entry(0x010f, 2, 10, 50);
    entry(0x0112, 3, 1, orientation.into());
    entry(0x8825, 4, 1, 60);
    tiff.extend([0; 4]);
    tiff.extend(b"SECRETCAM\0");
    // The GPS directory: one latitude of three rationals, far enough for the test's purpose.
    tiff.extend(b"\x01\0\x02\0\x05\0\x03\0\0\0\x4e\0\0\0\0\0\0\0SECRETPOSITION");
    tiff
}
