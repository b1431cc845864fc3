//! Opening the file: one process at a time, migrated, in the modes that durability needs.

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kefu_desk::Stores;
use kefu_migrations::MigrateError;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};

use crate::agent::SqliteAgentDirectory;
use crate::assignment::SqliteAssignmentStore;
use crate::canned::SqliteCannedStore;
use crate::connect::{Access, Target};
use crate::line::SqliteWaitingLine;
use crate::message::SqliteMessageStore;
use crate::note::SqliteNoteStore;
use crate::outbox::SqliteOutbox;
use crate::rows::statement;
use crate::search::SqliteSessionSearch;
use crate::session::SqliteSessionStore;
use crate::upload::SqliteUploadLedger;
use crate::writer::Writer;

/// How patient a store is, and how wide it reads.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Connections that read. Two to four serve a two-core machine.
    pub readers: u32,
    /// How long one statement waits for another process that holds the file.
    pub busy_timeout: Duration,
    /// How long a caller waits for a connection before the answer is `Unavailable`.
    pub acquire_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            readers: 3,
            busy_timeout: Duration::from_secs(2),
            acquire_timeout: Duration::from_secs(5),
        }
    }
}

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder does not exist or cannot be written.
    #[error("the database folder is missing or not writable")]
    Folder(#[source] std::io::Error),
    /// Another process has it open. Two would give out the same ids (T3).
    #[error("the database is in use by another process")]
    InUse,
    /// The file cannot be opened or written.
    #[error("the database file cannot be opened for writing")]
    Unwritable(#[source] DbErr),
    /// The file is not a SQLite database, or is damaged.
    #[error("the database file is damaged or not a database")]
    Damaged(#[source] DbErr),
    /// The file system does not support the write-ahead log (network folders usually do not).
    #[error("the database cannot use a write-ahead log here, only {0}")]
    NoWriteAheadLog(String),
    /// A newer kefu wrote it.
    #[error("the database has migration {0}, which this version does not know")]
    UnknownSchema(String),
    /// Anything else that the driver says.
    #[error("the database could not be opened")]
    Driver(#[source] DbErr),
}

impl From<DbErr> for OpenError {
    fn from(error: DbErr) -> Self {
        match crate::error::code_of(&error) {
            // PERM, READONLY, IOERR, FULL, CANTOPEN.
            Some(3 | 8 | 10 | 13 | 14) => Self::Unwritable(error),
            // CORRUPT, NOTADB.
            Some(11 | 26) => Self::Damaged(error),
            _ => Self::Driver(error),
        }
    }
}

/// The SQL ports on one SQLite file. Cheap to clone.
#[derive(Clone)]
pub struct SqliteStore {
    database: Arc<Database>,
}

/// What the ports share.
pub(crate) struct Database {
    pub(crate) writer: Writer,
    pub(crate) readers: DatabaseConnection,
    lock: Mutex<Option<File>>,
}

impl SqliteStore {
    /// Opens the file at `path`, creates it if it is missing, and brings it to this build's schema.
    ///
    /// # Errors
    /// [`OpenError`]; an existing file is as it was.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<Self, OpenError> {
        let lock = lock_file(path)?;
        let target = Target {
            path: path.to_owned(),
            busy_timeout: options.busy_timeout,
            acquire_timeout: options.acquire_timeout,
        };
        let connection = target.connect(Access::Write, 1).await?;
        prepare(&connection).await?;
        let readers = target.connect(Access::Read, options.readers).await?;
        let writer = Writer::new(target, connection);
        Ok(Self { database: Arc::new(Database { writer, readers, lock: Mutex::new(Some(lock)) }) })
    }

    /// The ports.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let database = || Arc::clone(&self.database);
        Stores {
            sessions: Arc::new(SqliteSessionStore(database())),
            agents: Arc::new(SqliteAgentDirectory(database())),
            assignments: Arc::new(SqliteAssignmentStore(database())),
            line: Arc::new(SqliteWaitingLine(database())),
            messages: Arc::new(SqliteMessageStore(database())),
            uploads: Arc::new(SqliteUploadLedger(database())),
            notes: Arc::new(SqliteNoteStore(database())),
            canned: Arc::new(SqliteCannedStore(database())),
            search: Arc::new(SqliteSessionSearch(database())),
            outbox: Arc::new(SqliteOutbox(database())),
        }
    }

    /// Finishes the running transaction, closes every connection and lets other processes in. Calls
    /// through ports that are still held fail as `Unavailable`.
    pub async fn close(&self) {
        self.database.writer.close().await;
        // The file is closed whatever the answer.
        let _ = self.database.readers.close_by_ref().await;
        self.database.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

/// Takes the lock that lasts as long as the process. It lies beside the database, since SQLite's own
/// locks must let other processes read.
fn lock_file(path: &Path) -> Result<File, OpenError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(beside))
        .map_err(OpenError::Folder)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse),
        Err(TryLockError::Error(error)) => Err(OpenError::Folder(error)),
    }
}

async fn prepare(connection: &DatabaseConnection) -> Result<(), OpenError> {
    let row = connection.query_one_raw(statement("PRAGMA journal_mode", [])).await?;
    let mode: String = row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or_default();
    if mode != "wal" {
        return Err(OpenError::NoWriteAheadLog(mode));
    }
    kefu_migrations::migrate(connection).await.map_err(|error| match error {
        MigrateError::UnknownSchema(name) => OpenError::UnknownSchema(name),
        MigrateError::Database(error) => error.into(),
    })
}
