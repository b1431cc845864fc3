//! GIF: keeps frames and their timing, drops comments, plain text and application blocks but the loop count.

use crate::bytes_reader::BytesReader;
use crate::sanitize::{Dimensions, ImageError};

const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2c;
const TRAILER: u8 = 0x3b;
const PLAIN_TEXT: u8 = 0x01;
const GRAPHIC_CONTROL: u8 = 0xf9;
const APPLICATION: u8 = 0xff;

pub(crate) fn sanitize(file: &[u8]) -> Result<(Dimensions, Vec<u8>), ImageError> {
    let mut reader = BytesReader::new(file);
    let dimensions = screen(&mut reader)?;
    let mut out = Vec::with_capacity(file.len());
    out.extend_from_slice(reader.since(0));
    let mut control = None;
    let mut has_image = false;
    loop {
        match reader.byte()? {
            EXTENSION => extension(&mut reader, &mut control, &mut out)?,
            IMAGE => {
                // A graphic control block belongs to the image that follows it.
                out.extend_from_slice(control.take().unwrap_or_default());
                out.push(IMAGE);
                out.extend_from_slice(frame(&mut reader)?);
                has_image = true;
            }
            TRAILER if has_image => {
                out.push(TRAILER);
                return Ok((dimensions, out));
            }
            TRAILER => return Err(ImageError::Malformed("a GIF without a picture")),
            _ => return Err(ImageError::Malformed("an unknown GIF block")),
        }
    }
}

/// Signature, screen descriptor and global colour table.
fn screen(reader: &mut BytesReader<'_>) -> Result<Dimensions, ImageError> {
    reader.array::<6>()?;
    let (width, height) = (reader.le16()?, reader.le16()?);
    let dimensions = Dimensions::checked(width.into(), height.into())?;
    let [flags, _background, _aspect] = reader.array()?;
    colour_table(reader, flags)?;
    Ok(dimensions)
}

fn colour_table(reader: &mut BytesReader<'_>, flags: u8) -> Result<(), ImageError> {
    if flags & 0x80 != 0 {
        reader.take(3 << ((flags & 0x07) + 1))?;
    }
    Ok(())
}

fn extension<'a>(
    reader: &mut BytesReader<'a>,
    control: &mut Option<&'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), ImageError> {
    let start = reader.position() - 1;
    match reader.byte()? {
        GRAPHIC_CONTROL => {
            let [len, _, _, _, _, end] = reader.array()?;
            if len != 4 || end != 0 {
                return Err(ImageError::Malformed("a bad GIF control block"));
            }
            *control = Some(reader.since(start));
        }
        APPLICATION => {
            if let Some(block) = loop_count(reader)? {
                out.extend(block);
            }
        }
        PLAIN_TEXT => {
            skip_sub_blocks(reader)?;
            *control = None;
        }
        _ => {
            skip_sub_blocks(reader)?;
        }
    }
    Ok(())
}

/// The block that says how often an animation repeats, made anew so that it carries nothing else.
fn loop_count(reader: &mut BytesReader<'_>) -> Result<Option<[u8; 19]>, ImageError> {
    let mut inner = reader.clone();
    skip_sub_blocks(reader)?;
    let len = inner.byte()?;
    let name = inner.take(len.into())?;
    if !matches!(name, b"NETSCAPE2.0" | b"ANIMEXTS1.0") {
        return Ok(None);
    }
    let Ok([3, 1, low, high]) = inner.array() else {
        return Ok(None);
    };
    let mut block = *b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0";
    block[3..14].copy_from_slice(name);
    (block[16], block[17]) = (low, high);
    Ok(Some(block))
}

/// What follows the separator of an image: descriptor, colour table, and data.
fn frame<'a>(reader: &mut BytesReader<'a>) -> Result<&'a [u8], ImageError> {
    let start = reader.position();
    let (left, top) = (reader.le16()?, reader.le16()?);
    let (width, height) = (reader.le16()?, reader.le16()?);
    Dimensions::checked(width.into(), height.into())?;
    // Viewers enlarge the screen to a frame that exceeds it, so the far edges are checked too.
    Dimensions::checked(u32::from(left) + u32::from(width), u32::from(top) + u32::from(height))?;
    let flags = reader.byte()?;
    colour_table(reader, flags)?;
    let code_size = reader.byte()?;
    if !(1..=8).contains(&code_size) {
        return Err(ImageError::Malformed("a bad GIF code size"));
    }
    if skip_sub_blocks(reader)? == 0 {
        return Err(ImageError::Malformed("an empty GIF frame"));
    }
    Ok(reader.since(start))
}

/// Passes a chain of sub-blocks with its terminator; the number of data bytes in it.
fn skip_sub_blocks(reader: &mut BytesReader<'_>) -> Result<usize, ImageError> {
    let mut total = 0;
    loop {
        match reader.byte()? {
            0 => return Ok(total),
            len => total += reader.take(len.into())?.len(),
        }
    }
}
