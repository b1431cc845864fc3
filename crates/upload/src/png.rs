//! PNG: keeps the chunks that draw the picture, drops text, times, EXIF and unknown ones.

use crate::bytes_reader::BytesReader;
use crate::exif::Orientation;
use crate::sanitize::{Dimensions, ImageError};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

pub(crate) fn sanitize(file: &[u8]) -> Result<(Dimensions, Vec<u8>), ImageError> {
    let mut reader = BytesReader::new(file);
    if reader.array()? != SIGNATURE {
        return Err(ImageError::UnknownFormat);
    }
    let header = Chunk::read(&mut reader)?;
    if &header.kind != b"IHDR" {
        return Err(ImageError::Malformed("a PNG that does not begin with its header"));
    }
    let mut parts = Parts::begin(&header, file.len())?;
    loop {
        let chunk = Chunk::read(&mut reader)?;
        if &chunk.kind == b"IEND" {
            return parts.finish(&header, &chunk);
        }
        parts.chunk(&chunk)?;
    }
}

/// One chunk; its checksum is verified only where the chunk is kept.
struct Chunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn read(reader: &mut BytesReader<'a>) -> Result<Self, ImageError> {
        let start = reader.position();
        let len = usize::try_from(reader.be32()?).map_err(|_| ImageError::Truncated)?;
        let kind = reader.array()?;
        if !kind.iter().all(u8::is_ascii_alphabetic) {
            return Err(ImageError::Malformed("a bad PNG chunk name"));
        }
        let data = reader.take(len)?;
        reader.be32()?;
        Ok(Self { kind, data, raw: reader.since(start) })
    }

    /// The chunk as it stands in the file.
    fn verified(&self) -> Result<&'a [u8], ImageError> {
        let split = self.raw.len().saturating_sub(4);
        let (covered, checksum) = self.raw.split_at(split);
        let covered = covered.get(4..).unwrap_or_default();
        if crc32(covered).to_be_bytes() != checksum {
            return Err(ImageError::Malformed("a wrong PNG checksum"));
        }
        Ok(self.raw)
    }
}

/// Where the walk is with regard to the picture's data, whose chunks must follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Inside,
    After,
}

struct Parts {
    dimensions: Dimensions,
    is_indexed: bool,
    has_palette: bool,
    orientation: Option<Orientation>,
    stage: Stage,
    /// The first two bytes of the picture's data: the zlib header.
    zlib_header: Vec<u8>,
    body: Vec<u8>,
}

impl Parts {
    fn begin(header: &Chunk<'_>, capacity: usize) -> Result<Self, ImageError> {
        const BAD: ImageError = ImageError::Malformed("a bad PNG header");
        if header.data.len() != 13 {
            return Err(BAD);
        }
        let mut reader = BytesReader::new(header.data);
        let dimensions = Dimensions::checked(reader.be32()?, reader.be32()?)?;
        let [depth, colour, compression, filter, interlace] = reader.array()?;
        let is_known_depth = match colour {
            0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
            3 => matches!(depth, 1 | 2 | 4 | 8),
            2 | 4 | 6 => matches!(depth, 8 | 16),
            _ => false,
        };
        if !is_known_depth || compression != 0 || filter != 0 || interlace > 1 {
            return Err(BAD);
        }
        Ok(Self {
            dimensions,
            is_indexed: colour == 3,
            has_palette: false,
            orientation: None,
            stage: Stage::Before,
            zlib_header: Vec::with_capacity(2),
            body: Vec::with_capacity(capacity),
        })
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), ImageError> {
        if &chunk.kind != b"IDAT" && self.stage == Stage::Inside {
            self.stage = Stage::After;
        }
        match &chunk.kind {
            b"IDAT" => self.data(chunk)?,
            b"PLTE" => self.palette(chunk)?,
            b"fcTL" => self.frame_control(chunk)?,
            b"eXIf" => {
                self.orientation = self.orientation.or_else(|| Orientation::find(chunk.data));
                return Ok(());
            }
            // Colour and transparency, density, and the frames of an animation.
            b"tRNS" | b"cHRM" | b"gAMA" | b"iCCP" | b"sRGB" | b"sBIT" | b"cICP" | b"bKGD"
            | b"hIST" | b"pHYs" | b"acTL" | b"fdAT" => {}
            // A capital first letter means that the picture cannot be drawn without the chunk.
            [first, ..] if first.is_ascii_uppercase() => {
                return Err(ImageError::Malformed("an unknown PNG chunk"));
            }
            _ => return Ok(()),
        }
        self.body.extend_from_slice(chunk.verified()?);
        Ok(())
    }

    fn data(&mut self, chunk: &Chunk<'_>) -> Result<(), ImageError> {
        if self.stage == Stage::After || (self.is_indexed && !self.has_palette) {
            return Err(ImageError::Malformed("PNG data out of place"));
        }
        self.stage = Stage::Inside;
        let missing = 2 - self.zlib_header.len();
        self.zlib_header.extend(chunk.data.iter().take(missing));
        Ok(())
    }

    fn palette(&mut self, chunk: &Chunk<'_>) -> Result<(), ImageError> {
        let len = chunk.data.len();
        let is_sound = len.is_multiple_of(3) && (3..=768).contains(&len);
        if self.has_palette || self.stage != Stage::Before || !is_sound {
            return Err(ImageError::Malformed("a bad PNG palette"));
        }
        self.has_palette = true;
        Ok(())
    }

    /// A frame of an animation must lie inside the picture whose size was checked.
    fn frame_control(&self, chunk: &Chunk<'_>) -> Result<(), ImageError> {
        let mut reader = BytesReader::new(chunk.data);
        reader.be32()?;
        let (width, height) = (reader.be32()?, reader.be32()?);
        let (x, y) = (reader.be32()?, reader.be32()?);
        let fits = |offset: u32, len: u32, side: u32| {
            len > 0 && offset.checked_add(len).is_some_and(|end| end <= side)
        };
        let is_inside =
            fits(x, width, self.dimensions.width) && fits(y, height, self.dimensions.height);
        if is_inside { Ok(()) } else { Err(ImageError::Malformed("a bad PNG frame")) }
    }

    fn finish(
        self,
        header: &Chunk<'_>,
        end: &Chunk<'_>,
    ) -> Result<(Dimensions, Vec<u8>), ImageError> {
        let &[method, flags] = self.zlib_header.as_slice() else {
            return Err(ImageError::Malformed("a PNG without a picture"));
        };
        let is_deflate = method & 0x0f == 8 && u16::from_be_bytes([method, flags]) % 31 == 0;
        if !is_deflate || !end.data.is_empty() {
            return Err(ImageError::Malformed("bad PNG data"));
        }
        let mut out = Vec::with_capacity(self.body.len() + 96);
        out.extend(SIGNATURE);
        out.extend_from_slice(header.verified()?);
        if let Some(orientation) = self.orientation {
            push_chunk(&mut out, *b"eXIf", &orientation.to_tiff());
        }
        out.extend(self.body);
        out.extend_from_slice(end.verified()?);
        Ok((self.dimensions, out))
    }
}

fn push_chunk<const N: usize>(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8; N]) {
    let covered = [&kind[..], data].concat();
    out.extend((N as u32).to_be_bytes());
    out.extend_from_slice(&covered);
    out.extend(crc32(&covered).to_be_bytes());
}

/// The checksum of PNG (CRC-32 as in ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
    }
}
