//! The page that a visitor looks at, on its way to their agent.

use kefu_console::PageView;
use kefu_core::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Problem, Required as _};
use crate::text::{DecimalId, Language, PageTitle, PageUrl, UnixMillis, decimal};

/// `chat.page` as a user sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageReport {
    /// An http(s) URL.
    #[schemars(with = "PageUrl")]
    pub url: String,
    /// The page's title.
    #[serde(default)]
    #[schemars(with = "PageTitle")]
    pub title: String,
    /// Its language, or the browser's.
    #[serde(default)]
    #[schemars(with = "Language")]
    pub language: String,
}

impl PageReport {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let url = fields.text("url").required("url")?;
        let title = fields.text("title")?.unwrap_or_default();
        let language = fields.text("language")?.unwrap_or_default();
        match PageView::new(url, title, language) {
            Ok(PageView { url, title, language }) => Ok(Self { url, title, language }),
            Err(error) => Err(Problem::bad(error.to_string())),
        }
    }

    /// What is relayed.
    #[must_use]
    pub fn view(self) -> PageView {
        PageView { url: self.url, title: self.title, language: self.language }
    }
}

/// `chat.page` as an agent gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageShown {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// An http(s) URL, as the visitor's page said.
    #[schemars(with = "PageUrl")]
    pub url: String,
    /// May be empty.
    #[schemars(with = "PageTitle")]
    pub title: String,
    /// May be empty.
    #[schemars(with = "Language")]
    pub language: String,
    /// When.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
}
