//! Signed links (U1): a link opens exactly what was signed, until its expiry, and nothing else does.

use std::time::Duration;

use kefu_core::Timestamp;
use kefu_upload::{LinkError, LinkSigner, UploadPath};

use super::Shape;
use crate::{Violation, ensure};

/// The check under test.
pub type Verify = fn(&LinkSigner, &UploadPath, i64, &str, Timestamp) -> Result<(), LinkError>;

/// 2026-01-28 00:00:00 UTC in Unix seconds; the links of the corpus expire around it.
const NOW: i64 = 1_769_558_400;
const TTL: i64 = 900;
/// Expiry times are multiples of this (U1).
const WINDOW: i64 = 300;
/// The last expiry that a server with a sane clock signs: the end of the year 9999.
const LAST: i64 = 253_402_300_799;

/// Links.
pub const SHAPE: Shape = Shape {
    name: "link",
    words: &[
        b"?",
        b"&",
        b"=",
        b"exp=",
        b"sig=",
        b"%2e",
        b"..",
        b"/",
        b".png",
        b".jpg",
        b"-",
        b"0",
        b"A",
        b"_",
        b"#",
        b"300",
        b"1769559000",
        b"1769558100",
    ],
    mended: signed,
};

/// Checks the real signer.
///
/// # Errors
/// What does not hold.
pub fn target(data: &[u8]) -> Result<(), Violation> {
    check(LinkSigner::verify, data)
}

/// Checks any signer.
///
/// # Errors
/// What does not hold.
pub fn check(verify: Verify, data: &[u8]) -> Result<(), Violation> {
    let text = String::from_utf8_lossy(data);
    let Some((path, expires_at, signature)) = parts(&text) else { return Ok(()) };
    let is_genuine = link_until(&path, expires_at)
        .is_some_and(|link| link == format!("{path}?exp={expires_at}&sig={signature}"));
    let expected = match is_genuine {
        false => Err(LinkError::Forged),
        true if expires_at <= NOW => Err(LinkError::Expired),
        true => Ok(()),
    };
    let verdict = verify(&signer(), &path, expires_at, signature, Timestamp(NOW * 1_000));
    ensure(verdict == expected, || format!("link: {verdict:?} instead of {expected:?}"))
}

fn signer() -> LinkSigner {
    let ttl = Duration::from_secs(TTL.unsigned_abs());
    LinkSigner::new(&[7; 32], ttl).expect("long enough")
}

/// The link that expires then, if there is one.
fn link_until(path: &UploadPath, expires_at: i64) -> Option<String> {
    let is_possible = (0..=LAST).contains(&expires_at) && expires_at % WINDOW == 0;
    is_possible.then(|| signer().sign(path, Timestamp((expires_at - TTL) * 1_000)))
}

/// Path, expiry and signature, as the query of a request gives them.
fn parts(text: &str) -> Option<(UploadPath, i64, &str)> {
    let (path, query) = text.split_once('?')?;
    let (expires_at, signature) = query.strip_prefix("exp=")?.split_once("&sig=")?;
    Some((UploadPath::parse_url(path)?, expires_at.parse().ok()?, signature))
}

/// With the right signature for what else it says.
fn signed(bytes: Vec<u8>) -> Vec<u8> {
    let link = {
        let text = String::from_utf8_lossy(&bytes);
        parts(&text).and_then(|(path, expires_at, _)| link_until(&path, expires_at))
    };
    link.map_or(bytes, String::into_bytes)
}
