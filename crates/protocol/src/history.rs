//! `chat.history` as a request, and the window that it and the HTTP call ask for.

use std::borrow::Cow;

use kefu_core::{PageLimit, Seq, SessionId};
use kefu_messaging::Window;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::fields::{Fields, Problem, Required as _};
use crate::text::{DecimalId, PageSize, Position, decimal};

/// Above every position: the window "the latest page".
const END: Seq = Seq(i64::MAX);

/// A page of one session's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRequest {
    /// The session.
    pub session_id: SessionId,
    /// Which part; the latest page when the client named no position.
    pub window: Window,
    /// How many.
    pub limit: PageLimit,
}

/// A window that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWindow {
    /// Two directions at once.
    #[error("only one of the two positions may be given")]
    Both,
    /// Below zero.
    #[error("a position must not be negative")]
    Negative,
    /// Outside 1 … 50.
    #[error("limit must be 1 to 50")]
    Limit,
}

/// The window of two optional positions and an optional size (default 50).
pub(crate) fn window(
    after: Option<Seq>,
    before: Option<Seq>,
    limit: Option<u32>,
) -> Result<(Window, PageLimit), InvalidWindow> {
    if after.or(before).is_some_and(|seq| seq < Seq(0)) {
        return Err(InvalidWindow::Negative);
    }
    let window = match (after, before) {
        (Some(_), Some(_)) => return Err(InvalidWindow::Both),
        (Some(after), None) => Window::After(after),
        (None, before) => Window::Before(before.unwrap_or(END)),
    };
    let limit = limit.map_or(Some(PageLimit::MAX), PageLimit::new).ok_or(InvalidWindow::Limit)?;
    Ok((window, limit))
}

impl HistoryRequest {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        let session_id = fields.id("sessionId").required("sessionId")?;
        let (after, before) = (fields.seq("afterSeq")?, fields.seq("beforeSeq")?);
        let limit = fields.whole("limit")?;
        let (window, limit) =
            window(after, before, limit).map_err(|error| Problem::bad(error.to_string()))?;
        Ok(Self { session_id, window, limit })
    }
}

/// A page of one session's messages.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HistoryRequest")]
struct HistoryRequestShape {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    session_id: SessionId,
    /// The first messages above this position. At most one of the two; without either the latest page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Position>")]
    after_seq: Option<Seq>,
    /// The last messages below this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Position>")]
    before_seq: Option<Seq>,
    /// 50 when left out.
    #[schemars(with = "Option<PageSize>")]
    limit: u32,
}

impl Serialize for HistoryRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (after_seq, before_seq) = match self.window {
            Window::After(seq) => (Some(seq), None),
            Window::Before(seq) => (None, Some(seq).filter(|seq| *seq != END)),
        };
        let limit = self.limit.get();
        HistoryRequestShape { session_id: self.session_id, after_seq, before_seq, limit }
            .serialize(serializer)
    }
}

impl JsonSchema for HistoryRequest {
    fn schema_name() -> Cow<'static, str> {
        HistoryRequestShape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HistoryRequestShape::json_schema(generator)
    }
}
