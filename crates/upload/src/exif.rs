//! The one fact of EXIF data that is kept: how a photo must be turned to stand upright.

/// `Orientation` of EXIF: 2 … 8. The value 1 means "as stored" and needs no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

const TAG_ORIENTATION: u16 = 0x0112;
const TYPE_SHORT: u16 = 3;
const ENTRY_LEN: usize = 12;

impl Orientation {
    /// Looks for the tag in the first directory of a TIFF block (what follows `Exif\0\0` in a JPEG,
    /// the whole `eXIf` chunk of a PNG). A block that makes no sense has no orientation.
    pub(crate) fn find(tiff: &[u8]) -> Option<Self> {
        let tiff = Tiff::open(tiff)?;
        let directory = usize::try_from(tiff.u32(4)?).ok()?;
        let entries = usize::from(tiff.u16(directory)?);
        let first = directory.checked_add(2)?;
        let entry = (0..entries)
            .map_while(|index| first.checked_add(index * ENTRY_LEN))
            .take_while(|at| *at < tiff.bytes.len())
            .find(|at| tiff.u16(*at) == Some(TAG_ORIENTATION))?;
        let is_one_short = tiff.u16(entry + 2)? == TYPE_SHORT && tiff.u32(entry + 4)? == 1;
        let value = u8::try_from(tiff.u16(entry + 8)?).ok()?;
        (is_one_short && (2..=8).contains(&value)).then_some(Self(value))
    }

    /// A TIFF block that says this and nothing else.
    pub(crate) const fn to_tiff(self) -> [u8; 26] {
        let mut tiff = *b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0";
        tiff[19] = self.0;
        tiff
    }
}

/// A TIFF block in either byte order; reads outside of it give `None`.
struct Tiff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Tiff<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        match bytes {
            [b'I', b'I', 42, 0, ..] => Some(Self { bytes, big_endian: false }),
            [b'M', b'M', 0, 42, ..] => Some(Self { bytes, big_endian: true }),
            _ => None,
        }
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk::<N>().copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.array(at)?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.array(at)?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_again() {
        for value in 2..=8 {
            let orientation = Orientation(value);
            assert_eq!(Orientation::find(&orientation.to_tiff()), Some(orientation));
        }
        for value in [0, 1, 9] {
            assert_eq!(Orientation::find(&Orientation(value).to_tiff()), None);
        }
    }

    #[test]
    fn little_endian_is_read_too() {
        let tiff = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(Orientation::find(tiff), Some(Orientation(6)));
    }

    #[test]
    fn offsets_out_of_the_block_are_harmless() {
        assert_eq!(Orientation::find(b"MM\0\x2a\xff\xff\xff\xff"), None);
        assert_eq!(Orientation::find(b"MM\0\x2a\0\0\0\x08\xff\xff"), None);
        assert_eq!(Orientation::find(b"MM"), None);
    }
}
