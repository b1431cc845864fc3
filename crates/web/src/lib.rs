#![doc = include_str!("../README.md")]

/// One file as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// The whole file.
    pub body: &'static [u8],
    /// The same, compressed for `Content-Encoding: gzip`.
    pub gzip: &'static [u8],
    /// Value of `ETag` for the plain file: strong, so equal tags mean equal bytes.
    pub etag: String,
    /// Value of `ETag` for the compressed one, which is other bytes.
    pub gzip_etag: String,
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
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(Asset {
        content_type: content_type(name)?,
        body: file.body,
        gzip: file.gzip,
        etag: format!("\"{}\"", file.digest),
        gzip_etag: format!("\"{}-gzip\"", file.digest),
    })
}

/// What the build made of a file or of a page's modules.
struct File {
    name: &'static str,
    body: &'static [u8],
    gzip: &'static [u8],
    /// SHA-256 of the body, in hexadecimal.
    digest: &'static str,
}

static FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "ts" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
