//! What happens to a row that the domain cannot accept.

use kefu_core::StoreFault;

/// A stored row that breaks a rule of the domain: written by hand, or by another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {key} of {table} cannot be read: bad {column}")]
pub struct UnreadableRow {
    /// The table.
    pub table: &'static str,
    /// The row's primary key.
    pub key: String,
    /// The first column that is wrong.
    pub column: &'static str,
}

impl From<UnreadableRow> for StoreFault {
    fn from(row: UnreadableRow) -> Self {
        Self::internal(row)
    }
}

/// Names a row while its columns are read.
pub(crate) struct Reading {
    table: &'static str,
    key: String,
}

impl Reading {
    pub(crate) fn new(table: &'static str, key: &impl ToString) -> Self {
        Self { table, key: key.to_string() }
    }

    /// The converted value of `column`.
    pub(crate) fn value<T, E>(
        &self,
        column: &'static str,
        converted: Result<T, E>,
    ) -> Result<T, UnreadableRow> {
        converted.map_err(|_| self.bad(column))
    }

    /// The converted value of `column`, `None` being the failure.
    pub(crate) fn known<T>(
        &self,
        column: &'static str,
        converted: Option<T>,
    ) -> Result<T, UnreadableRow> {
        converted.ok_or_else(|| self.bad(column))
    }

    /// The converted value of a nullable `column`.
    pub(crate) fn nullable<V, T, E>(
        &self,
        column: &'static str,
        stored: Option<V>,
        convert: impl FnOnce(V) -> Result<T, E>,
    ) -> Result<Option<T>, UnreadableRow> {
        self.value(column, stored.map(convert).transpose())
    }

    fn bad(&self, column: &'static str) -> UnreadableRow {
        UnreadableRow { table: self.table, key: self.key.clone(), column }
    }
}
