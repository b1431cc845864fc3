//! What is accepted, what is refused, and what is left of a file (cases B97, B102).

use crate::support::{
    AFTER_IHDR, contains, encode, insert, jpeg_segment, pixels, png_chunk, tiff_with_position,
};
use image::{ImageDecoder as _, ImageFormat as Encoded};
use kefu_upload::{ImageError, ImageFormat, sanitize};

const FORMATS: [(Encoded, ImageFormat); 3] = [
    (Encoded::Jpeg, ImageFormat::Jpeg),
    (Encoded::Png, ImageFormat::Png),
    (Encoded::Gif, ImageFormat::Gif),
];

#[test]
fn a_plain_image_keeps_its_format_sides_and_pixels() {
    for (encoded, format) in FORMATS {
        let file = encode(encoded, 61, 37);
        let clean = sanitize(&file).unwrap();
        assert_eq!((clean.format, clean.width, clean.height), (format, 61, 37));
        assert_eq!(pixels(&clean.bytes), pixels(&file), "{format}");
        assert!(clean.bytes.len() <= file.len());
        let again = sanitize(&clean.bytes).unwrap();
        assert_eq!(again, clean, "cleaning twice changes nothing");
    }
}

#[test]
fn markup_under_any_name_is_refused() {
    for body in [
        &b"<!doctype html><script>alert(1)</script>"[..],
        b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>",
        b"<?xml version=\"1.0\"?><svg/>",
        b"%PDF-1.7",
        b"RIFF\x24\0\0\0WEBPVP8 ",
        b"",
    ] {
        assert_eq!(sanitize(body), Err(ImageError::UnknownFormat));
    }
}

#[test]
fn markup_behind_a_good_signature_is_refused() {
    for signature in
        [&b"\xff\xd8\xff"[..], b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"GIF89a=1;/*"]
    {
        let file = [signature, b"<html><script>alert(1)</script></html>"].concat();
        assert!(sanitize(&file).is_err(), "{signature:?}");
    }
}

#[test]
fn what_follows_the_end_is_dropped() {
    for (encoded, format) in FORMATS {
        let file = encode(encoded, 16, 16);
        let polyglot = [&file[..], b"<script>alert(1)</script>PK\x03\x04"].concat();
        assert_eq!(sanitize(&polyglot), sanitize(&file), "{format}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for (encoded, format) in FORMATS {
        let file = encode(encoded, 24, 24);
        let end = sanitize(&file).map(|_| file.len()).unwrap();
        for len in 0..end {
            assert!(sanitize(&file[..len]).is_err(), "{format}: {len} of {end} bytes");
        }
    }
}

#[test]
fn sides_are_limited_at_8192() {
    let png = |width: u32, height: u32| {
        let mut file = encode(Encoded::Png, 1, 1);
        let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let header = png_chunk(b"IHDR", &[&sides[..], &file[24..29]].concat());
        file.splice(8..AFTER_IHDR, header);
        sanitize(&file).map(|clean| (clean.width, clean.height))
    };
    assert_eq!(png(8192, 8192), Ok((8192, 8192)));
    assert_eq!(png(8193, 1), Err(ImageError::TooManyPixels { width: 8193, height: 1 }));
    assert_eq!(png(1, 8193), Err(ImageError::TooManyPixels { width: 1, height: 8193 }));
    assert!(matches!(png(0, 1), Err(ImageError::Malformed(_))));
    assert!(matches!(png(u32::MAX, u32::MAX), Err(ImageError::TooManyPixels { .. })));

    let jpeg = |height: u16, width: u16| {
        let mut file = encode(Encoded::Jpeg, 8, 8);
        let frame = file.windows(4).position(|w| w == [0xff, 0xc0, 0, 17]).unwrap();
        file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
        file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
        sanitize(&file).map(|clean| (clean.width, clean.height))
    };
    assert_eq!(jpeg(8192, 8192), Ok((8192, 8192)));
    assert_eq!(jpeg(8193, 8), Err(ImageError::TooManyPixels { width: 8, height: 8193 }));
    assert!(matches!(jpeg(0, 8), Err(ImageError::Malformed(_))));

    let gif = |at: usize, side: u16| {
        let mut file = encode(Encoded::Gif, 8, 8);
        file[at..at + 2].copy_from_slice(&side.to_le_bytes());
        sanitize(&file).map(|clean| (clean.width, clean.height))
    };
    assert_eq!(gif(6, 8192), Ok((8192, 8)));
    assert_eq!(gif(6, 8193), Err(ImageError::TooManyPixels { width: 8193, height: 8 }));
}

/// B102: 30 KB that would decode to 10.8 GB.
#[test]
fn a_picture_of_60000_by_60000_is_refused_by_its_header() {
    let header = [&60_000_u32.to_be_bytes()[..], &60_000_u32.to_be_bytes(), &[8, 2, 0, 0, 0]];
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &header.concat()));
    file.extend(png_chunk(b"IDAT", &[&[0x78, 0x9c][..], &[0; 30_000]].concat()));
    file.extend(png_chunk(b"IEND", b""));
    let refused = Err(ImageError::TooManyPixels { width: 60_000, height: 60_000 });
    assert_eq!(sanitize(&file), refused);
    assert_eq!(sanitize(&file[..AFTER_IHDR]), refused, "nothing behind the header is read");
}

#[test]
fn a_gif_frame_beyond_the_limit_is_refused() {
    let file = encode(Encoded::Gif, 8, 8);
    let image = file.windows(10).position(|w| w[0] == 0x2c && w[1..5] == [0; 4]).unwrap();
    for at in [image + 1, image + 3, image + 5, image + 7] {
        let mut far = file.clone();
        far[at..at + 2].copy_from_slice(&8193_u16.to_le_bytes());
        assert!(matches!(sanitize(&far), Err(ImageError::TooManyPixels { .. })), "{at}");
    }
}

#[test]
fn a_photo_loses_its_position_and_keeps_its_orientation() {
    let plain = encode(Encoded::Jpeg, 40, 30);
    let exif = [b"Exif\0\0", &tiff_with_position(6)[..]].concat();
    let extras = [
        jpeg_segment(0xe1, &exif),
        jpeg_segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0SECRETXMP"),
        jpeg_segment(0xed, b"Photoshop 3.0\0SECRETIPTC"),
        jpeg_segment(0xfe, b"SECRETCOMMENT"),
        jpeg_segment(0xe2, b"MPF\0SECRETPREVIEW"),
        jpeg_segment(0xe0, b"JFXX\0\x10SECRETTHUMBNAIL"),
        jpeg_segment(0xe2, b"ICC_PROFILE\0\x01\x01colours"),
    ];
    let photo = insert(&plain, 2, &extras.concat());
    let clean = sanitize(&photo).unwrap();

    assert!(contains(&photo, b"SECRET"));
    assert!(!contains(&clean.bytes, b"SECRET"));
    assert!(contains(&clean.bytes, b"ICC_PROFILE\0\x01\x01colours"));
    let mut decoder =
        image::codecs::jpeg::JpegDecoder::new(std::io::Cursor::new(&clean.bytes)).unwrap();
    assert_eq!(decoder.orientation().unwrap(), image::metadata::Orientation::Rotate90);
    let picture_data = |file: &[u8]| {
        let frame = file.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
        file[frame..].to_vec()
    };
    assert_eq!(picture_data(&clean.bytes), picture_data(&plain), "tables and scans are untouched");
}

#[test]
fn a_photo_as_stored_gets_no_exif_at_all() {
    let exif = [b"Exif\0\0", &tiff_with_position(1)[..]].concat();
    let photo = insert(&encode(Encoded::Jpeg, 8, 8), 2, &jpeg_segment(0xe1, &exif));
    assert!(!contains(&sanitize(&photo).unwrap().bytes, b"Exif"));
}

#[test]
fn the_thumbnail_inside_jfif_is_dropped() {
    let plain = encode(Encoded::Jpeg, 8, 8);
    assert_eq!(plain[2..11], *b"\xff\xe0\0\x10JFIF\0");
    let jfif = [&plain[6..18], &[2, 1], b"SECRET"].concat();
    let photo = [&plain[..2], &jpeg_segment(0xe0, &jfif), &plain[20..]].concat();
    assert_eq!(sanitize(&photo), sanitize(&plain));
}

#[test]
fn a_progressive_jpeg_with_several_scans_is_kept_whole() {
    // Two scans behind each other, with tables, restarts and stuffed bytes between: the walk must see all of it.
    let file = [
        &b"\xff\xd8"[..],
        &jpeg_segment(0xc2, b"\x08\0\x08\0\x08\x01\x01\x11\0"),
        &jpeg_segment(0xda, b"\x01\x01\0\0\0\0"),
        b"\x12\xff\0\x34\xff\xd0\x56",
        &jpeg_segment(0xfe, b"SECRET"),
        &jpeg_segment(0xc4, b"table"),
        &jpeg_segment(0xda, b"\x01\x01\0\x01\x3f\0"),
        b"\x78\xff\xff\xd9",
    ]
    .concat();
    let clean = sanitize(&file).unwrap().bytes;
    assert!(contains(&clean, b"\x12\xff\0\x34\xff\xd0\x56\xff\xc4"));
    assert!(clean.ends_with(b"\x78\xff\xd9"));
    assert!(!contains(&clean, b"SECRET"));
}

#[test]
fn a_png_loses_texts_and_exif_and_keeps_its_orientation() {
    let plain = encode(Encoded::Png, 40, 30);
    let extras = [
        png_chunk(b"tEXt", b"Comment\0SECRETTEXT"),
        png_chunk(b"zTXt", b"Comment\0\0SECRETZTEXT"),
        png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0SECRETXMP"),
        png_chunk(b"tIME", b"\x07\xea\x01\x1c\0\0\0"),
        png_chunk(b"eXIf", &tiff_with_position(8)),
        png_chunk(b"prVW", b"SECRETPREVIEW"),
        png_chunk(b"gAMA", &45_455_u32.to_be_bytes()),
        png_chunk(b"pHYs", b"\0\0\x0b\x13\0\0\x0b\x13\x01"),
    ];
    let file = insert(&plain, AFTER_IHDR, &extras.concat());
    let clean = sanitize(&file).unwrap();

    assert!(!contains(&clean.bytes, b"SECRET"));
    assert!(!contains(&clean.bytes, b"tIME"));
    assert!(contains(&clean.bytes, &extras[6]) && contains(&clean.bytes, &extras[7]));
    assert_eq!(pixels(&clean.bytes), pixels(&plain));
    let mut decoder =
        image::codecs::png::PngDecoder::new(std::io::Cursor::new(&clean.bytes)).unwrap();
    assert_eq!(decoder.orientation().unwrap(), image::metadata::Orientation::Rotate270);
}

#[test]
fn a_damaged_png_is_refused() {
    let plain = encode(Encoded::Png, 8, 8);
    let mut flipped = plain.clone();
    let last_data_byte = plain.len() - 12 - 4 - 1;
    flipped[last_data_byte] ^= 1;
    assert!(matches!(sanitize(&flipped), Err(ImageError::Malformed(_))));
    for chunk in [
        png_chunk(b"CgBI", b"\0\0\0\0"),
        png_chunk(b"IHDR", &plain[16..29]),
        png_chunk(b"IEND", b""),
        png_chunk(b"fcTL", &[0xff; 26]),
        png_chunk(b"<htm", b""),
    ] {
        assert!(sanitize(&insert(&plain, AFTER_IHDR, &chunk)).is_err(), "{chunk:?}");
    }
    let no_zlib = [&plain[..AFTER_IHDR], &png_chunk(b"IDAT", b"<html>"), &png_chunk(b"IEND", b"")];
    assert!(sanitize(&no_zlib.concat()).is_err());
}

#[test]
fn a_gif_loses_comments_and_keeps_its_loop() {
    let plain = encode(Encoded::Gif, 12, 12);
    let table = if plain[10] & 0x80 == 0 { 0 } else { 3 << ((plain[10] & 7) + 1) };
    let extras = [
        &b"\x21\xfe\x0dSECRETCOMMENT\0"[..],
        b"\x21\xff\x0bXMP DataXMP\x09SECRETXMP\0",
        // Two sub-blocks: the loop count, and something that hides behind it.
        b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x05\0\x06SECRET\0",
        b"\x21\xf9\x04\0\0\0\0\0",
        b"\x21\x01\x0c\0\0\0\0\0\0\0\0\0\0\0\0\x06SECRET\0",
        b"\x21\x77\x06SECRET\0",
    ];
    let file = insert(&plain, 13 + table, &extras.concat());
    let clean = sanitize(&file).unwrap();

    assert!(!contains(&clean.bytes, b"SECRET"));
    assert!(contains(&clean.bytes, b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x05\0\0"));
    assert_eq!(pixels(&clean.bytes), pixels(&plain));
}

#[test]
fn an_animation_keeps_all_its_frames() {
    use image::AnimationDecoder as _;
    let mut file = Vec::new();
    {
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut file);
        encoder.set_repeat(image::codecs::gif::Repeat::Infinite).unwrap();
        for shade in [10, 120, 250] {
            let picture = image::RgbaImage::from_pixel(9, 9, image::Rgba([shade, 0, 0, 255]));
            let delay = image::Delay::from_numer_denom_ms(40, 1);
            encoder.encode_frame(image::Frame::from_parts(picture, 0, 0, delay)).unwrap();
        }
    }
    let clean = sanitize(&file).unwrap();
    let frames = |bytes: &[u8]| {
        let decoder = image::codecs::gif::GifDecoder::new(std::io::Cursor::new(bytes)).unwrap();
        let frames = decoder.into_frames().collect_frames().unwrap();
        frames.into_iter().map(|f| (f.delay(), f.into_buffer())).collect::<Vec<_>>()
    };
    assert_eq!(frames(&clean.bytes).len(), 3);
    assert_eq!(frames(&clean.bytes), frames(&file));
}

mod generated {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn random_bytes_never_panic(
            signature in prop::sample::select(vec![
                &b""[..], b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a\x01\0\x01\0\0\0\0",
            ]),
            bytes in prop::collection::vec(any::<u8>(), 0..2048),
        ) {
            let _ = sanitize(&[signature, &bytes].concat());
        }

        /// A damaged file is refused or cleaned; what comes out is always stable and within the limits.
        #[test]
        fn damaged_images_never_panic(
            which in 0..3_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut file = encode(FORMATS[which].0, 20, 20);
            for (at, value) in changes {
                let at = at.index(file.len());
                file[at] = value;
            }
            if let Ok(clean) = sanitize(&file) {
                prop_assert!((1..=8192).contains(&clean.width) && (1..=8192).contains(&clean.height));
                prop_assert_eq!(sanitize(&clean.bytes), Ok(clean));
            }
        }

        /// No text that was put into metadata survives, wherever among the leading blocks it stood.
        #[test]
        fn metadata_never_survives(text in "[A-Z]{24}", marker in 0xe3_u8..=0xed) {
            let secret = text.as_bytes();
            let jpeg = insert(&encode(Encoded::Jpeg, 8, 8), 2, &jpeg_segment(marker, secret));
            let png = insert(&encode(Encoded::Png, 8, 8), AFTER_IHDR, &png_chunk(b"tEXt", secret));
            for file in [jpeg, png] {
                prop_assert!(!contains(&sanitize(&file).unwrap().bytes, secret));
            }
        }
    }
}
