#![doc = include_str!("../README.md")]

use std::borrow::Cow;

use rust_embed::Embed;

/// One file as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// The whole file.
    pub body: Cow<'static, [u8]>,
    /// Value of `ETag`: strong, so equal tags mean equal bytes.
    pub etag: String,
}

/// The file that is served at `path` (of a URL, beginning with `/`, without query), if there is one.
///
/// `/` is the demo page and `/console` the agent console; everything else goes by its file name.
#[must_use]
pub fn asset(path: &str) -> Option<Asset> {
    let name = match path {
        "/" => "index.html",
        "/console" => "console.html",
        _ => path.strip_prefix('/')?,
    };
    let file = Static::get(name)?;
    Some(Asset {
        content_type: content_type(name)?,
        etag: strong_etag(&file.metadata.sha256_hash()),
        body: file.data,
    })
}

#[derive(Embed)]
#[folder = "static"]
struct Static;

fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

fn strong_etag(digest: &[u8; 32]) -> String {
    use std::fmt::Write as _;

    let mut etag = String::with_capacity(66);
    etag.push('"');
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag
}

#[cfg(test)]
mod tests;
