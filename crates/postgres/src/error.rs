//! The one translation of driver errors.

use kefu_core::StoreFault;
use kefu_entities::UnreadableRow;
use sea_orm::sqlx;

/// Why a transaction or a read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Anything before the commit: nothing was applied.
    #[error(transparent)]
    Driver(#[from] sqlx::Error),
    /// The commit itself.
    #[error("commit failed: {0}")]
    Commit(#[source] sqlx::Error),
    /// No answer in time, before the commit was asked for.
    #[error("the database does not answer")]
    Silent,
    /// No answer to the commit in time.
    #[error("the database does not answer a commit")]
    SilentCommit,
    /// Somebody else created the row that this transaction was about to create.
    #[error("a row was created meanwhile")]
    Raced,
    /// This node's worker id is not its own any more (T3).
    #[error("the lease of the worker id is lost")]
    LeaseLost,
    /// Every worker id is leased, or others were quicker.
    #[error("no worker id is free")]
    NoWorkerId,
    /// A stored row breaks a rule of the domain.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRow),
    /// A row does not have the columns of this build.
    #[error("a row cannot be read: {0}")]
    Columns(#[from] sea_orm::DbErr),
    /// A row could not be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A decision wants to write what this port may not, or what is not there.
    #[error("{0}")]
    Forbidden(&'static str),
}

/// What an error says about the transaction it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Somebody else was in the way: rolled back, worth another try at once.
    Conflict,
    /// The connection is gone.
    Lost,
    /// A statement was prepared before a migration changed what it gives.
    Stale,
    /// The server answered that it cannot now: overload, shutdown, no room, a timeout.
    Refused,
    /// The statement or a value is at fault; the same again would fail again.
    Data,
}

impl Failure {
    /// Whether the same transaction is worth another try at once. Nothing of it was applied.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Driver(error) => {
                matches!(class(error), Class::Conflict | Class::Lost | Class::Stale)
            }
            Self::Commit(error) => class(error) == Class::Conflict,
            Self::Raced | Self::NoWorkerId => true,
            Self::Silent
            | Self::SilentCommit
            | Self::LeaseLost
            | Self::Unreadable(_)
            | Self::Columns(_)
            | Self::Json(_)
            | Self::Forbidden(_) => false,
        }
    }

    /// Whether the connection's prepared statements are to be forgotten: they show rows as they were
    /// before a migration that was applied while this process runs.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Driver(error) | Self::Commit(error) if class(error) == Class::Stale)
    }

    /// Whether a statement that commits by itself is known to have written nothing.
    pub(crate) fn is_rolled_back(&self) -> bool {
        matches!(self, Self::Commit(error)
            if matches!(class(error), Class::Conflict | Class::Stale | Class::Data))
    }

    /// Whether the server refused a row or a statement.
    pub(crate) fn is_about_data(&self) -> bool {
        matches!(self, Self::Driver(error) | Self::Commit(error) if class(error) == Class::Data)
    }
}

impl From<Failure> for StoreFault {
    fn from(failure: Failure) -> Self {
        let reason = failure.to_string();
        match failure {
            Failure::Silent | Failure::Raced | Failure::LeaseLost | Failure::NoWorkerId => {
                Self::Unavailable { reason }
            }
            Failure::SilentCommit => Self::Indeterminate { reason },
            Failure::Driver(error) => match class(&error) {
                Class::Conflict | Class::Lost | Class::Stale | Class::Refused => {
                    Self::Unavailable { reason }
                }
                Class::Data => Self::Internal { reason },
            },
            Failure::Commit(error) => match class(&error) {
                Class::Conflict | Class::Stale => Self::Unavailable { reason },
                // Either the request or its answer was lost, or the server was stopped around it.
                Class::Lost | Class::Refused => Self::Indeterminate { reason },
                Class::Data => Self::Internal { reason },
            },
            Failure::Unreadable(_)
            | Failure::Columns(_)
            | Failure::Json(_)
            | Failure::Forbidden(_) => Self::Internal { reason },
        }
    }
}

fn class(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(refusal) => {
            // Every error of PostgreSQL has a code.
            refusal.code().map_or(Class::Data, |code| class_of_code(&code))
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed
        // What the driver says when a connection ends in the middle of a message.
        | sqlx::Error::Protocol(_) => Class::Lost,
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Class::Refused,
        _ => Class::Data,
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>, first by code, then by class.
fn class_of_code(code: &str) -> Class {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available.
        "40001" | "40P01" | "55P03" => Class::Conflict,
        // idle_in_transaction_session_timeout, admin_shutdown, crash_shutdown, database_dropped,
        // idle_session_timeout: said in place of an answer, and the connection ends.
        "25P03" | "57P01" | "57P02" | "57P04" | "57P05" => Class::Lost,
        // feature_not_supported: "cached plan must not change result type".
        "0A000" => Class::Stale,
        // statement_completion_unknown; read_only_sql_transaction: a standby; query_canceled;
        // cannot_connect_now; object_in_use; a database that does not exist.
        "40003" | "25006" | "57014" | "57P03" | "55006" | "3D000" => Class::Refused,
        _ => class_of_group(code.get(..2).unwrap_or_default()),
    }
}

fn class_of_group(group: &str) -> Class {
    match group {
        // Connection exception, also protocol violations that a pooler reports.
        "08" => Class::Lost,
        // Transaction rollback of another kind.
        "40" => Class::Conflict,
        // Invalid authorization; insufficient resources (disk full, out of memory, too many
        // connections); operator intervention; system error (I/O).
        "28" | "53" | "57" | "58" => Class::Refused,
        // Data exceptions, constraints, syntax, limits, internal errors and the rest.
        _ => Class::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_by_what_the_caller_may_conclude() {
        for (code, expected) in [
            ("40P01", Class::Conflict),
            ("0A000", Class::Stale),
            ("40001", Class::Conflict),
            ("55P03", Class::Conflict),
            ("57P01", Class::Lost),
            ("25P03", Class::Lost),
            ("08006", Class::Lost),
            ("57014", Class::Refused),
            ("53300", Class::Refused),
            ("53100", Class::Refused),
            ("25006", Class::Refused),
            ("40003", Class::Refused),
            ("23505", Class::Data),
            ("23514", Class::Data),
            ("22021", Class::Data),
            ("22P05", Class::Data),
            ("42P01", Class::Data),
            ("XX000", Class::Data),
            ("", Class::Data),
        ] {
            assert_eq!(class_of_code(code), expected, "{code}");
        }
    }

    #[test]
    fn only_a_commit_can_be_indeterminate() {
        let before = StoreFault::from(Failure::Driver(sqlx::Error::WorkerCrashed));
        assert!(matches!(before, StoreFault::Unavailable { .. }), "{before:?}");
        let at = StoreFault::from(Failure::Commit(sqlx::Error::WorkerCrashed));
        assert!(matches!(at, StoreFault::Indeterminate { .. }), "{at:?}");
        assert!(!Failure::Commit(sqlx::Error::WorkerCrashed).is_transient());
    }
}
