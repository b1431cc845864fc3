//! Server-made names of images: the only names that exist.

use std::fmt;
use std::str::FromStr;

use kefu_core::Timestamp;
use time::{Date, Duration, Month, OffsetDateTime};

use crate::format::ImageFormat;

const ROOT: &str = "/uploads/chat/";
/// The last second of the year 9999, the last day that eight digits can name.
const MAX_UNIX_SECONDS: i64 = 253_402_300_799;

/// Where an image lives: `/uploads/chat/YYYYMMDD/<32 hex digits>.<jpg|png|gif>`, the day in UTC.
///
/// The value holds the parts, not text, so there is exactly one text form, and nothing that a client
/// wrote (`..`, separators, markup in a file name; B97) can be part of it. It is the key of the blob and
/// of the ledger's row, and the `content` of an image message as it is stored (M1). Ordered by day first, as its text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadPath {
    day: Date,
    name: u128,
    format: ImageFormat,
}

/// Text that is not the path of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the path of an upload")]
pub struct InvalidUploadPath;

impl UploadPath {
    /// A fresh path in the folder of the day of `now`, with 128 bits from the operating system's
    /// generator: paths cannot be guessed and do not collide.
    #[must_use]
    pub fn generate(now: Timestamp, format: ImageFormat) -> Self {
        // The one place of this crate that draws randomness.
        Self::with_name(now, rand::random(), format)
    }

    /// The path with the given name bits.
    #[must_use]
    pub fn with_name(now: Timestamp, name: u128, format: ImageFormat) -> Self {
        let seconds = now.0.div_euclid(1000).clamp(0, MAX_UNIX_SECONDS);
        let day = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::seconds(seconds)).date();
        Self { day, name, format }
    }

    /// The path in the `content` of an image message: the path itself or an absolute http(s) URL with
    /// that path; query and fragment are dropped (M1).
    ///
    /// The host is not looked at: whether the image is an upload of the session is the ledger's answer.
    #[must_use]
    pub fn parse_url(content: &str) -> Option<Self> {
        let end = content.find(['?', '#']).unwrap_or(content.len());
        let url = content.get(..end)?;
        match url.split_once("://") {
            None => url.parse().ok(),
            Some((scheme, rest)) if is_http(scheme) => {
                let slash = rest.find('/').filter(|host_len| *host_len > 0)?;
                rest.get(slash..)?.parse().ok()
            }
            Some(_) => None,
        }
    }

    /// The format that the bytes behind this path have.
    #[must_use]
    pub const fn format(&self) -> ImageFormat {
        self.format
    }

    /// The day folder: eight digits, UTC.
    #[must_use]
    pub fn day(&self) -> String {
        day_text(self.day)
    }

    /// The file's name inside its day folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{:032x}.{}", self.name, self.format.extension())
    }

    /// The path made of a day folder and a file name.
    pub(crate) fn from_parts(day: &str, file_name: &str) -> Result<Self, InvalidUploadPath> {
        let (name, extension) = file_name.split_once('.').ok_or(InvalidUploadPath)?;
        Ok(Self {
            day: parse_day(day).ok_or(InvalidUploadPath)?,
            name: parse_name(name).ok_or(InvalidUploadPath)?,
            format: ImageFormat::from_extension(extension).ok_or(InvalidUploadPath)?,
        })
    }
}

impl fmt::Display for UploadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ROOT}{}/{}", self.day(), self.file_name())
    }
}

impl FromStr for UploadPath {
    type Err = InvalidUploadPath;

    fn from_str(text: &str) -> Result<Self, InvalidUploadPath> {
        let inner = text.strip_prefix(ROOT).ok_or(InvalidUploadPath)?;
        let (day, file_name) = inner.split_once('/').ok_or(InvalidUploadPath)?;
        Self::from_parts(day, file_name)
    }
}

fn is_http(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

fn day_text(day: Date) -> String {
    format!("{:04}{:02}{:02}", day.year(), u8::from(day.month()), day.day())
}

pub(crate) fn parse_day(text: &str) -> Option<Date> {
    if text.len() != 8 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let month = Month::try_from(text.get(4..6)?.parse::<u8>().ok()?).ok()?;
    let day = text.get(6..)?.parse().ok()?;
    Date::from_calendar_date(text.get(..4)?.parse().ok()?, month, day).ok()
}

fn parse_name(text: &str) -> Option<u128> {
    let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 32 || !is_hex {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/uploads/chat/20260128/000000000000000000000000000000ff.png";

    fn path() -> UploadPath {
        UploadPath::with_name(Timestamp(1_769_558_400_000), 255, ImageFormat::Png)
    }

    #[test]
    fn text_round_trips() {
        assert_eq!(path().to_string(), TEXT);
        assert_eq!(TEXT.parse(), Ok(path()));
    }

    #[test]
    fn the_day_is_the_utc_day_at_its_very_edges() {
        let day = |ms| UploadPath::with_name(Timestamp(ms), 0, ImageFormat::Gif).day();
        assert_eq!(day(1_769_558_399_999), "20260127");
        assert_eq!(day(1_769_558_400_000), "20260128");
        assert_eq!(day(-1), "19700101");
        assert_eq!(day(i64::MAX), "99991231");
    }

    #[test]
    fn generated_names_differ() {
        let make = || UploadPath::generate(Timestamp(0), ImageFormat::Jpeg);
        assert_ne!(make(), make());
    }

    #[test]
    fn only_the_one_shape_is_a_path() {
        for bad in [
            "",
            "/",
            "/uploads/chat/",
            "uploads/chat/20260128/000000000000000000000000000000ff.png",
            "/uploads/chat/20260128/../000000000000000000000000000000ff.png",
            "/uploads/chat/../chat/20260128/000000000000000000000000000000ff.png",
            "/uploads/chat/20260128/%2e%2e%2fkefu.db",
            "/uploads/chat/20260128//000000000000000000000000000000ff.png",
            "/uploads/chat/20260128/000000000000000000000000000000FF.png",
            "/uploads/chat/20260128/0000000000000000000000000000000ff.png",
            "/uploads/chat/20260128/+00000000000000000000000000000ff.png",
            "/uploads/chat/20260128/000000000000000000000000000000ff.svg",
            "/uploads/chat/20260128/000000000000000000000000000000ff.png.html",
            "/uploads/chat/20260128/000000000000000000000000000000ff.png\0",
            "/uploads/chat/20260128/000000000000000000000000000000ff",
            "/uploads/chat/20261328/000000000000000000000000000000ff.png",
            "/uploads/chat/20260230/000000000000000000000000000000ff.png",
            "/uploads/chat/２0260128/000000000000000000000000000000ff.png",
            "/uploads/chat/\"><img onerror=alert(1)>.png",
        ] {
            assert_eq!(bad.parse::<UploadPath>(), Err(InvalidUploadPath), "{bad:?}");
        }
    }

    #[test]
    fn content_is_a_path_or_a_url_with_that_path() {
        for good in [
            TEXT.to_owned(),
            format!("{TEXT}?exp=1&sig=x"),
            format!("{TEXT}#x"),
            format!("https://chat.example{TEXT}?exp=1&sig=x://y"),
            format!("HTTP://127.0.0.1:8080{TEXT}"),
        ] {
            assert_eq!(UploadPath::parse_url(&good), Some(path()), "{good:?}");
        }
        for bad in [
            String::new(),
            format!("//chat.example{TEXT}"),
            format!("ftp://chat.example{TEXT}"),
            format!("javascript:alert(1){TEXT}"),
            format!("https://{TEXT}"),
            format!("https://chat.example/x{TEXT}"),
            "https://chat.example".to_owned(),
            format!(" {TEXT}"),
        ] {
            assert_eq!(UploadPath::parse_url(&bad), None, "{bad:?}");
        }
    }
}
