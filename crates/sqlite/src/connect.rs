//! Connections to the file, with every setting that durability and patience depend on.

use std::path::PathBuf;
use std::time::Duration;

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr};

/// Pages of 4 KiB the log may hold before a commit moves them into the file: four times the default,
/// since each move costs the committing caller a second flush.
const CHECKPOINT_PAGES: &str = "4000";
/// Bytes the log keeps once everything in it has been moved.
const LOG_BYTES_KEPT: &str = "67108864";
/// Page cache of one connection, in KiB (the sign is SQLite's).
const CACHE_KIB: &str = "-16384";

/// What one connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The one that writes; creates the file.
    Write,
    /// One of the pool that reads, unable to write.
    Read,
}

/// The file, and how long to wait for it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) busy_timeout: Duration,
    pub(crate) acquire_timeout: Duration,
}

impl Target {
    /// Up to `connections` connections, the first of them open.
    pub(crate) async fn connect(
        &self,
        access: Access,
        connections: u32,
    ) -> Result<DatabaseConnection, DbErr> {
        let settings = self.settings(access);
        let mut options = ConnectOptions::new("sqlite:");
        options
            .max_connections(connections)
            .min_connections(1)
            .acquire_timeout(self.acquire_timeout)
            .idle_timeout(None::<Duration>)
            .max_lifetime(None::<Duration>)
            // A connection to a file does not go stale between two uses.
            .test_before_acquire(false)
            .sqlx_logging(false)
            .map_sqlx_sqlite_opts(move |_| settings.clone());
        Database::connect(options).await
    }

    fn settings(&self, access: Access) -> SqliteConnectOptions {
        let settings = SqliteConnectOptions::new()
            .filename(&self.path)
            .busy_timeout(self.busy_timeout)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .pragma("cache_size", CACHE_KIB)
            .pragma("temp_store", "MEMORY");
        match access {
            Access::Write => settings
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
                .pragma("journal_size_limit", LOG_BYTES_KEPT),
            // Not a read-only file handle: readers of a WAL file take part in its shared memory.
            Access::Read => settings.pragma("query_only", "ON"),
        }
    }
}
