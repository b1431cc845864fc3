//! Takes a payload apart field by field, so that a refusal names the field and never repeats what was in it.

use std::collections::BTreeMap;
use std::str::FromStr;

use kefu_core::text::{TextError, check_free_text, check_short_text};
use kefu_core::{ErrorCode, PageLimit, Seq, SessionId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Why a payload is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::BadRequest, message: message.into() }
    }

    /// Over-long or empty content has codes of its own (A4, M1).
    pub(crate) fn content(error: TextError) -> Self {
        let code = match error {
            TextError::Empty => ErrorCode::ContentEmpty,
            TextError::TooLong { .. } => ErrorCode::ContentTooLong,
            TextError::Control => ErrorCode::BadRequest,
        };
        Self { code, message: error.to_string() }
    }
}

/// The fields of a payload that were not taken yet. `null` counts as absent; what is never taken is ignored.
#[derive(Debug, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) const fn new(payload: Map<String, Value>) -> Self {
        Self(payload)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::bad(format!("{name} must be a string"))),
        }
    }

    /// A string that may be stored anywhere (T4).
    pub(crate) fn short_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match check_short_text(&text) {
            Ok(()) => Ok(Some(text)),
            Err(TextError::TooLong { max }) => {
                Err(Problem::bad(format!("{name} is longer than {max} characters")))
            }
            Err(TextError::Empty | TextError::Control) => {
                Err(Problem::bad(format!("{name} holds a control character")))
            }
        }
    }

    /// A comment or a note: may be empty, has the codes of content (A4).
    pub(crate) fn comment(&mut self, name: &str, max: usize) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        check_free_text(&text, max).map_err(Problem::content)?;
        Ok(Some(text))
    }

    /// An id. A number is refused even where it would fit: a client that sends numbers loses digits later.
    pub(crate) fn id<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let id = text.parse().map_err(|_| Problem::bad(format!("{name} is not valid")))?;
        Ok(Some(id))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Problem::bad(format!("{name} must be true or false"))),
        }
    }

    pub(crate) fn whole<T: TryFrom<u64>>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| Problem::bad(format!("{name} must be a whole number")))
    }

    /// `limit`, 50 when left out.
    pub(crate) fn page_limit(&mut self) -> Result<PageLimit, Problem> {
        let Some(limit) = self.whole("limit")? else { return Ok(PageLimit::MAX) };
        PageLimit::new(limit).ok_or_else(|| Problem::bad("limit must be 1 to 50"))
    }

    pub(crate) fn seq(&mut self, name: &str) -> Result<Option<Seq>, Problem> {
        Ok(self.whole::<i64>(name)?.map(Seq))
    }

    /// Positions by session.
    pub(crate) fn seqs(&mut self, name: &str) -> Result<BTreeMap<SessionId, Seq>, Problem> {
        let wrong = || Problem::bad(format!("{name} must map session ids to whole numbers"));
        match self.take(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(entries)) => entries
                .iter()
                .map(|(id, seq)| {
                    let seq = seq.as_i64().filter(|seq| *seq >= 0).ok_or_else(wrong)?;
                    Ok((id.parse().map_err(|_| wrong())?, Seq(seq)))
                })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// One of the words of `T`; `words` names them for the refusal.
    pub(crate) fn word<T: DeserializeOwned>(
        &mut self,
        name: &str,
        words: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|_| Problem::bad(format!("{name} must be {words}")))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }
}

/// A field that must be there.
pub(crate) trait Required<T> {
    /// The value, or a refusal that names the field.
    fn required(self, name: &str) -> Result<T, Problem>;
}

impl<T> Required<T> for Result<Option<T>, Problem> {
    fn required(self, name: &str) -> Result<T, Problem> {
        self?.ok_or_else(|| Problem::bad(format!("{name} is missing")))
    }
}
