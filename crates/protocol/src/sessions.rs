//! Lists of sessions, past ones among them.

use kefu_core::{PageLimit, Seq, SessionId, Timestamp};
use kefu_desk::{ListScope, ListedSession};
use kefu_messaging::SearchQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Problem, Required as _};
use crate::note::{largest_page, page_size};
use crate::server::message::{SignLinks, content};
use crate::server::session::{SessionObject, session_object};
use crate::text::{DecimalId, PageSize, Position, ShortText, UnixMillis, optional_decimal};
use crate::vocabulary::{MessageType, SenderType};

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionScope {
    /// Those of the visitor of `sessionId`.
    Visitor,
    /// Those that the caller has, or had at the end.
    Mine,
    /// Everybody's; supervisors only.
    All,
}

/// `chat.sessions.list` as a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionListRequest {
    /// Which.
    pub scope: SessionScope,
    /// With the scope `visitor` only: a session of that visitor.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<DecimalId>")]
    pub session_id: Option<SessionId>,
    /// What was said, or who the visitor is: every word of it must occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ShortText>")]
    pub query: Option<String>,
    /// The `nextCursor` of the page before.
    #[serde(with = "optional_decimal", skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<ShortText>")]
    pub cursor: Option<SessionId>,
    /// 50 when left out.
    #[serde(serialize_with = "page_size", default = "largest_page")]
    #[schemars(with = "Option<PageSize>")]
    pub limit: PageLimit,
}

impl SessionListRequest {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let scope = fields.word("scope", "visitor, mine or all").required("scope")?;
        let session_id = match scope {
            SessionScope::Visitor => Some(fields.id("sessionId").required("sessionId")?),
            SessionScope::Mine | SessionScope::All => None,
        };
        let query = fields.short_text("query")?.filter(|query| !query.trim().is_empty());
        if query.as_deref().is_some_and(|query| SearchQuery::parse(query).is_none()) {
            return Err(Problem::bad("query has neither letter nor digit"));
        }
        let (cursor, limit) = (fields.id("cursor")?, fields.page_limit()?);
        Ok(Self { scope, session_id, query, cursor, limit })
    }

    /// Which sessions are asked for; `None` for a visitor's without a session, which is never read.
    #[must_use]
    pub fn wanted(&self) -> Option<ListScope> {
        match self.scope {
            SessionScope::Visitor => self.session_id.map(ListScope::Visitor),
            SessionScope::Mine => Some(ListScope::Mine),
            SessionScope::All => Some(ListScope::All),
        }
    }

    /// What is searched for.
    #[must_use]
    pub fn search(&self) -> Option<SearchQuery> {
        self.query.as_deref().and_then(SearchQuery::parse)
    }
}

/// A session's last message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastMessage {
    /// Its position.
    #[schemars(with = "Position")]
    pub seq: Seq,
    /// Who wrote it.
    pub sender_type: SenderType,
    /// What `content` is.
    pub msg_type: MessageType,
    /// The text, or a signed link.
    pub content: String,
    /// When it was stored.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The session, as agents see it; without a place in the line.
    #[serde(flatten)]
    pub session: SessionObject,
    /// Null when nobody wrote anything.
    pub last_message: Option<LastMessage>,
}

impl SessionEntry {
    fn new(listed: &ListedSession, agents_online: bool, links: &dyn SignLinks) -> Self {
        let ListedSession { session, agent, unread, last } = listed;
        let object = session_object(session, agent.as_ref(), None, agents_online);
        Self {
            session: object.for_agent(session, *unread, None),
            last_message: last.as_ref().map(|message| LastMessage {
                seq: message.seq,
                sender_type: (&message.sender).into(),
                msg_type: message.msg_type.into(),
                content: content(message, links),
                time: message.create_time,
            }),
        }
    }
}

/// `chat.sessions.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsList {
    /// As asked for.
    pub scope: SessionScope,
    /// The newest first.
    pub sessions: Vec<SessionEntry>,
    /// Where the next page begins; null at the end.
    pub next_cursor: Option<String>,
}

impl SessionsList {
    /// The page that answers a request for `scope`.
    #[must_use]
    pub fn new(scope: SessionScope, list: &kefu_desk::SessionList, links: &dyn SignLinks) -> Self {
        let listed = &list.page.items;
        let entry = |listed| SessionEntry::new(listed, list.agents_online, links);
        let last = listed.last().filter(|_| list.page.has_more);
        Self {
            scope,
            sessions: listed.iter().map(entry).collect(),
            next_cursor: last.map(|listed| listed.session.id.to_string()),
        }
    }
}
