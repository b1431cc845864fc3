//! The page that a visitor looks at.

use kefu_core::limit::{MAX_LANGUAGE_CHARS, MAX_PAGE_TITLE_CHARS, MAX_PAGE_URL_CHARS};
use kefu_core::text::is_clean;

/// A visitor's page, as the visitor's browser says: shown to agents, never stored or followed by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageView {
    /// An http(s) URL.
    pub url: String,
    /// Its title; may be empty.
    pub title: String,
    /// A language tag; may be empty.
    pub language: String,
}

/// Why a page is not relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPage {
    /// Neither http nor https, over-long, or with control characters.
    #[error("url must be an http or https address of at most 1024 characters")]
    Url,
    /// Over-long, or with control characters.
    #[error("title must have at most 256 characters, none of them a control character")]
    Title,
    /// Over-long, or with control characters.
    #[error("language must have at most 35 characters, none of them a control character")]
    Language,
}

impl PageView {
    /// Checks what a browser says.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn new(url: String, title: String, language: String) -> Result<Self, InvalidPage> {
        let is_http = |scheme: &str| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                && url.len() > scheme.len()
        };
        if !(is_http("http://") || is_http("https://")) || !is_clean(&url, MAX_PAGE_URL_CHARS) {
            return Err(InvalidPage::Url);
        }
        if !is_clean(&title, MAX_PAGE_TITLE_CHARS) {
            return Err(InvalidPage::Title);
        }
        if !is_clean(&language, MAX_LANGUAGE_CHARS) {
            return Err(InvalidPage::Language);
        }
        Ok(Self { url, title, language })
    }
}
