//! Canned replies, as agents and supervisors see and change them.

use kefu_console::{CannedReply, CannedRequest, Shelf, check_shortcut};
use kefu_core::limit::MAX_CANNED_CHARS;
use kefu_core::text::check_message_text;
use kefu_core::{CannedId, PageLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Problem, Required as _};
use crate::note::{largest_page, page_size};
use crate::text::{Comment, DecimalId, PageSize, ShortText, Shortcut, decimal, optional_decimal};

/// Whose a canned reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CannedScope {
    /// The agent's own.
    Mine,
    /// The team's, written by supervisors.
    Team,
}

/// `chat.canned.list` as a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CannedListRequest {
    /// What was typed after the `/`; all without it.
    #[serde(default)]
    #[schemars(with = "ShortText")]
    pub query: String,
    /// The `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ShortText>")]
    pub cursor: Option<CannedCursor>,
    /// 50 when left out.
    #[serde(serialize_with = "page_size", default = "largest_page")]
    #[schemars(with = "Option<PageSize>")]
    pub limit: PageLimit,
}

impl CannedListRequest {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            query: fields.short_text("query")?.unwrap_or_default(),
            cursor: fields.id("cursor")?,
            limit: fields.page_limit()?,
        })
    }

    /// How many replies come before this page.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.cursor.map_or(0, |cursor| usize::from(cursor.0))
    }
}

/// Where a page of canned replies begins. Clients hand it back as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CannedCursor(u16);

impl std::str::FromStr for CannedCursor {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Serialize for CannedCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// `chat.canned.put` as a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CannedPut {
    /// The reply to be replaced; a new one without it.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<DecimalId>")]
    pub id: Option<CannedId>,
    /// What is typed to find it; once among the replies of its scope.
    #[schemars(with = "Shortcut")]
    pub shortcut: String,
    /// For people.
    #[serde(default)]
    #[schemars(with = "ShortText")]
    pub title: String,
    /// What it says; not blank.
    #[schemars(with = "Comment")]
    pub content: String,
    /// Whose it is to be.
    pub scope: CannedScope,
}

impl CannedPut {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let id = fields.id("id")?;
        let shortcut = fields.text("shortcut").required("shortcut")?;
        if !check_shortcut(&shortcut) {
            return Err(Problem::bad(
                "shortcut must be 1 to 32 characters without white space or a / in front",
            ));
        }
        let title = fields.short_text("title")?.unwrap_or_default();
        let content = fields.text("content").required("content")?;
        check_message_text(&content, MAX_CANNED_CHARS).map_err(Problem::content)?;
        let scope = fields.word("scope", "mine or team").required("scope")?;
        Ok(Self { id, shortcut, title, content, scope })
    }

    /// What is asked for.
    #[must_use]
    pub fn request(&self) -> CannedRequest {
        CannedRequest {
            id: self.id,
            shortcut: self.shortcut.clone(),
            title: self.title.clone(),
            content: self.content.clone(),
        }
    }
}

/// A canned reply by its id: `chat.canned.delete`, both ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CannedRef {
    /// The reply.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub id: CannedId,
}

impl CannedRef {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { id: fields.id("id").required("id")? })
    }
}

/// One canned reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CannedItem {
    /// The reply.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub id: CannedId,
    /// What is typed to find it.
    #[schemars(with = "Shortcut")]
    pub shortcut: String,
    /// For people; may be empty.
    #[schemars(with = "ShortText")]
    pub title: String,
    /// What it says.
    #[schemars(with = "Comment")]
    pub content: String,
    /// Whose it is.
    pub scope: CannedScope,
}

impl From<&CannedReply> for CannedItem {
    fn from(reply: &CannedReply) -> Self {
        Self {
            id: reply.id,
            shortcut: reply.shortcut.clone(),
            title: reply.title.clone(),
            content: reply.content.clone(),
            scope: match reply.shelf {
                Shelf::Own(_) => CannedScope::Mine,
                Shelf::Team => CannedScope::Team,
            },
        }
    }
}

/// `chat.canned.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CannedList {
    /// Best first.
    pub items: Vec<CannedItem>,
    /// Where the next page begins; null at the end.
    pub next_cursor: Option<String>,
}

impl CannedList {
    /// The page that answers `request`.
    #[must_use]
    pub fn new(request: &CannedListRequest, page: &kefu_core::Page<CannedReply>) -> Self {
        let next = request.offset() + page.items.len();
        Self {
            items: page.items.iter().map(CannedItem::from).collect(),
            next_cursor: page.has_more.then(|| next.to_string()),
        }
    }
}

/// `chat.canned.put`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CannedStored {
    /// As stored.
    pub item: CannedItem,
}
