//! JPEG: keeps what a decoder needs, drops every other segment and whatever follows the end.

use crate::bytes_reader::BytesReader;
use crate::exif::Orientation;
use crate::sanitize::{Dimensions, ImageError};

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;
const APP14: u8 = 0xee;

const EXIF: &[u8] = b"Exif\0\0";

pub(crate) fn sanitize(file: &[u8]) -> Result<(Dimensions, Vec<u8>), ImageError> {
    let mut reader = BytesReader::new(file);
    if reader.array()? != [0xff, SOI] {
        return Err(ImageError::UnknownFormat);
    }
    let mut parts = Parts::new(file.len());
    loop {
        match next_marker(&mut reader)? {
            EOI => return parts.finish(),
            SOS => parts.scan(&mut reader)?,
            marker => parts.segment(marker, segment_payload(&mut reader)?)?,
        }
    }
}

/// What has been accepted so far. Leading segments are held apart, because their order is fixed.
struct Parts<'a> {
    dimensions: Option<Dimensions>,
    jfif: Option<&'a [u8]>,
    orientation: Option<Orientation>,
    body: Vec<u8>,
    has_scan: bool,
}

impl<'a> Parts<'a> {
    fn new(capacity: usize) -> Self {
        Self {
            dimensions: None,
            jfif: None,
            orientation: None,
            body: Vec::with_capacity(capacity),
            has_scan: false,
        }
    }

    fn segment(&mut self, marker: u8, payload: &'a [u8]) -> Result<(), ImageError> {
        match marker {
            // Baseline, extended and progressive frames: what browsers draw.
            0xc0..=0xc2 => {
                self.frame(payload)?;
                push_segment(&mut self.body, marker, payload);
            }
            // Huffman tables, quantisation tables, restart interval.
            0xc4 | 0xdb | 0xdd => push_segment(&mut self.body, marker, payload),
            // The first 12 bytes are version and density; an embedded thumbnail follows them.
            APP0 if payload.starts_with(b"JFIF\0") => {
                self.jfif = self.jfif.or(payload.get(..12));
            }
            APP1 => {
                let tiff = payload.strip_prefix(EXIF);
                self.orientation = self.orientation.or(tiff.and_then(Orientation::find));
            }
            APP2 if payload.starts_with(b"ICC_PROFILE\0") => {
                push_segment(&mut self.body, marker, payload);
            }
            // The Adobe segment says how colours are to be read; it has 12 bytes.
            APP14 if payload.starts_with(b"Adobe") => {
                if let Some(adobe) = payload.get(..12) {
                    push_segment(&mut self.body, marker, adobe);
                }
            }
            // Positions, camera data, comments, previews, and whatever else applications add.
            0xe0..=0xef | 0xfe => {}
            _ => return Err(ImageError::Malformed("an unexpected JPEG segment")),
        }
        Ok(())
    }

    fn frame(&mut self, payload: &[u8]) -> Result<(), ImageError> {
        if self.dimensions.is_some() {
            return Err(ImageError::Malformed("a second JPEG frame"));
        }
        let mut reader = BytesReader::new(payload);
        let precision = reader.byte()?;
        let (height, width) = (reader.be16()?, reader.be16()?);
        let components = reader.byte()?;
        let is_plain = precision == 8
            && matches!(components, 1 | 3 | 4)
            && reader.rest().len() == usize::from(components) * 3;
        if !is_plain {
            return Err(ImageError::Malformed("a bad JPEG frame header"));
        }
        self.dimensions = Some(Dimensions::checked(width.into(), height.into())?);
        Ok(())
    }

    fn scan(&mut self, reader: &mut BytesReader<'a>) -> Result<(), ImageError> {
        if self.dimensions.is_none() {
            return Err(ImageError::Malformed("JPEG data before its frame header"));
        }
        push_segment(&mut self.body, SOS, segment_payload(reader)?);
        let data = reader.take(entropy_coded_len(reader.rest()).ok_or(ImageError::Truncated)?)?;
        if data.is_empty() {
            return Err(ImageError::Malformed("an empty JPEG scan"));
        }
        self.body.extend_from_slice(data);
        self.has_scan = true;
        Ok(())
    }

    fn finish(self) -> Result<(Dimensions, Vec<u8>), ImageError> {
        let (Some(dimensions), true) = (self.dimensions, self.has_scan) else {
            return Err(ImageError::Malformed("a JPEG without a picture"));
        };
        let mut out = Vec::with_capacity(self.body.len() + 64);
        out.extend([0xff, SOI]);
        if let Some(jfif) = self.jfif {
            let without_thumbnail = [jfif, &[0, 0]].concat();
            push_segment(&mut out, APP0, &without_thumbnail);
        }
        if let Some(orientation) = self.orientation {
            push_segment(&mut out, APP1, &[EXIF, &orientation.to_tiff()].concat());
        }
        out.extend(self.body);
        out.extend([0xff, EOI]);
        Ok((dimensions, out))
    }
}

/// The marker that must come next; any number of 0xff may precede it.
fn next_marker(reader: &mut BytesReader<'_>) -> Result<u8, ImageError> {
    if reader.byte()? != 0xff {
        return Err(ImageError::Malformed("no JPEG marker where one must be"));
    }
    loop {
        match reader.byte()? {
            0xff => {}
            marker => return Ok(marker),
        }
    }
}

fn segment_payload<'a>(reader: &mut BytesReader<'a>) -> Result<&'a [u8], ImageError> {
    let len = reader.be16()?;
    let payload = len.checked_sub(2).ok_or(ImageError::Malformed("a bad JPEG segment length"))?;
    reader.take(payload.into())
}

/// Bytes up to the next marker that is neither a stuffed 0xff nor a restart.
fn entropy_coded_len(data: &[u8]) -> Option<usize> {
    data.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7))
}

fn push_segment(out: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    // Payloads come out of a segment or are shorter than 64 bytes, so the length always fits.
    let len = u16::try_from(payload.len() + 2).unwrap_or(u16::MAX);
    out.extend([0xff, marker]);
    out.extend(len.to_be_bytes());
    out.extend_from_slice(payload);
}
