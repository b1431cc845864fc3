//! The one translation of driver errors.

use kefu_core::StoreFault;
use kefu_entities::UnreadableRow;
use sea_orm::sqlx;
use sea_orm::{DbErr, RuntimeErr};

/// Why a transaction or a read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The writer was not free in time.
    #[error("waited too long for the writer")]
    Crowded,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Anything before the commit: nothing was applied.
    #[error(transparent)]
    Driver(#[from] DbErr),
    /// The commit itself.
    #[error("commit failed: {0}")]
    Commit(#[source] DbErr),
    /// A stored row breaks a rule of the domain.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRow),
    /// A row could not be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A decision wants to write what this port may not, or what is not there.
    #[error("{0}")]
    Forbidden(&'static str),
}

/// What the primary result code of SQLite says about a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Somebody else holds the file.
    Busy,
    /// The disk is full or the file cannot be written.
    Full,
    /// The machine failed: memory, I/O, the driver's own thread.
    Machine,
    /// The statement or a value is at fault; the same again would fail again.
    Data,
}

impl Failure {
    /// Whether the same transaction is worth another try at once.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Driver(error) | Self::Commit(error) => class(error) == Class::Busy,
            Self::Crowded
            | Self::Closed
            | Self::Unreadable(_)
            | Self::Json(_)
            | Self::Forbidden(_) => false,
        }
    }

    /// Whether the connection is as good as before, once rolled back.
    pub(crate) fn is_about_data(&self) -> bool {
        match self {
            Self::Driver(error) => class(error) == Class::Data,
            Self::Unreadable(_) | Self::Json(_) | Self::Forbidden(_) => true,
            Self::Commit(_) | Self::Crowded | Self::Closed => false,
        }
    }
}

impl From<Failure> for StoreFault {
    fn from(failure: Failure) -> Self {
        let reason = failure.to_string();
        match failure {
            Failure::Crowded | Failure::Closed => Self::Unavailable { reason },
            Failure::Driver(error) => match class(&error) {
                Class::Busy | Class::Full | Class::Machine => Self::Unavailable { reason },
                Class::Data => Self::Internal { reason },
            },
            Failure::Commit(error) => match class(&error) {
                // The commit frame was not written, and the connection is closed before its next
                // use, which rolls back whatever is still open.
                Class::Busy | Class::Full => Self::Unavailable { reason },
                Class::Data => Self::Internal { reason },
                // The commit frame may stand in the log though its flush failed: a crash right now
                // would bring it back.
                Class::Machine => Self::Indeterminate { reason },
            },
            Failure::Unreadable(_) | Failure::Json(_) | Failure::Forbidden(_) => {
                Self::Internal { reason }
            }
        }
    }
}

fn class(error: &DbErr) -> Class {
    match error {
        DbErr::ConnectionAcquire(_) => Class::Busy,
        _ => driver_error(error).map_or(Class::Data, class_of_driver),
    }
}

/// The primary result code of SQLite, if the error has one.
pub(crate) fn code_of(error: &DbErr) -> Option<i32> {
    driver_error(error).and_then(primary_code)
}

fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

fn class_of_driver(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(_) => primary_code(error).map_or(Class::Data, class_of_code),
        sqlx::Error::PoolTimedOut => Class::Busy,
        sqlx::Error::Io(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::PoolClosed
        | sqlx::Error::BeginFailed
        // What the driver answers while it still believes in a transaction that SQLite ended.
        | sqlx::Error::InvalidSavePointStatement => Class::Machine,
        _ => Class::Data,
    }
}

/// The low byte of SQLite's extended result code.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// <https://www.sqlite.org/rescode.html>, by primary code.
const fn class_of_code(primary: i32) -> Class {
    match primary {
        // BUSY, LOCKED, PROTOCOL (a locking race).
        5 | 6 | 15 => Class::Busy,
        // PERM, READONLY, FULL, CANTOPEN.
        3 | 8 | 13 | 14 => Class::Full,
        // NOMEM, INTERRUPT, IOERR.
        7 | 9 | 10 => Class::Machine,
        // CONSTRAINT, MISMATCH, TOOBIG, CORRUPT, NOTADB, ERROR and the rest.
        _ => Class::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_by_what_the_caller_may_conclude() {
        assert_eq!(class_of_code(5), Class::Busy);
        assert_eq!(class_of_code(13), Class::Full);
        assert_eq!(class_of_code(10), Class::Machine);
        assert_eq!(class_of_code(19), Class::Data);
    }

    #[test]
    fn only_a_commit_can_be_indeterminate() {
        let crashed = || DbErr::Query(RuntimeErr::SqlxError(sqlx::Error::WorkerCrashed.into()));
        let before = StoreFault::from(Failure::Driver(crashed()));
        assert!(matches!(before, StoreFault::Unavailable { .. }), "{before:?}");
        let at = StoreFault::from(Failure::Commit(crashed()));
        assert!(matches!(at, StoreFault::Indeterminate { .. }), "{at:?}");
    }
}
