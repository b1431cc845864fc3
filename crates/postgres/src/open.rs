//! Opening a database that has this build's schema.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kefu_core::{Clock, StoreFault};
use kefu_desk::{Stores, TaskLeases};
use kefu_migrations::{HISTORY_TABLE, MigrateError, SchemaState};
use sea_orm::{Database as SeaOrm, sqlx};
use sqlx::postgres::PgPool;

use crate::agent::PgAgentDirectory;
use crate::assignment::PgAssignmentStore;
use crate::canned::PgCannedStore;
use crate::connect::PgOptions;
use crate::error::Failure;
use crate::line::PgWaitingLine;
use crate::message::PgMessageStore;
use crate::note::PgNoteStore;
use crate::outbox::PgOutbox;
use crate::rows::{Query, column, query};
use crate::search::PgSessionSearch;
use crate::session::PgSessionStore;
use crate::task::PgTaskLeases;
use crate::upload::PgUploadLedger;
use crate::worker::Worker;

const HAS_HISTORY: &str = "SELECT to_regclass($1) IS NOT NULL";
const APPLIED: &str = "SELECT version FROM seaql_migrations";
const DATABASE_TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Why a database could not be opened or migrated.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It lacks migrations: run `gateway migrate` first.
    #[error("the database lacks migrations: {}", .0.join(", "))]
    Pending(Vec<String>),
    /// A newer kefu wrote it.
    #[error("the database has migration {0}, which this version does not know")]
    UnknownSchema(String),
    /// It cannot be reached, refuses the role, or does not exist.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// Its answer was a refusal or could not be understood.
    #[error("the database could not be opened")]
    Refused(#[source] StoreFault),
    /// A migration failed. The database is as it was.
    #[error("the database could not be migrated")]
    Migration(#[source] sea_orm::DbErr),
}

/// The SQL ports on one PostgreSQL database. Cheap to clone.
#[derive(Clone)]
pub struct PgStore {
    pub(crate) database: Arc<Database>,
}

/// What the ports share.
pub(crate) struct Database {
    pub(crate) pool: PgPool,
    pub(crate) options: PgOptions,
    pub(crate) begin_sql: String,
    pub(crate) worker: Worker,
}

impl PgStore {
    /// Opens the database at `url`. It must have this build's schema: [`PgStore::migrate`] gives it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn connect(url: &str, options: PgOptions) -> Result<Self, OpenError> {
        let pool = options.connect(url).await.map_err(OpenError::Unreachable)?;
        let begin_sql = options.begin_sql();
        let worker = Worker::default();
        let store = Self { database: Arc::new(Database { pool, options, begin_sql, worker }) };
        match store.database.schema_state().await {
            Ok(SchemaState::Current) => Ok(store),
            Ok(SchemaState::Pending(names)) => Err(OpenError::Pending(names)),
            Ok(SchemaState::Unknown(name)) => Err(OpenError::UnknownSchema(name)),
            Err(failure) => Err(OpenError::Refused(failure.into())),
        }
    }

    /// Brings the database at `url` to this build's schema. Of several at once one works and the
    /// others wait for it. Not by way of a pooler that keeps no prepared statements.
    ///
    /// # Errors
    /// [`OpenError`]; the database is as it was.
    pub async fn migrate(url: &str) -> Result<(), OpenError> {
        let database = SeaOrm::connect(url).await.map_err(OpenError::Migration)?;
        let migrated = kefu_migrations::migrate(&database).await;
        // Closed whatever the answer.
        let _ = database.close().await;
        migrated.map_err(|error| match error {
            MigrateError::UnknownSchema(name) => OpenError::UnknownSchema(name),
            MigrateError::Database(error) => OpenError::Migration(error),
        })
    }

    /// The ports.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let database = || Arc::clone(&self.database);
        Stores {
            sessions: Arc::new(PgSessionStore(database())),
            agents: Arc::new(PgAgentDirectory(database())),
            assignments: Arc::new(PgAssignmentStore(database())),
            line: Arc::new(PgWaitingLine(database())),
            messages: Arc::new(PgMessageStore(database())),
            uploads: Arc::new(PgUploadLedger(database())),
            notes: Arc::new(PgNoteStore(database())),
            canned: Arc::new(PgCannedStore(database())),
            search: Arc::new(PgSessionSearch(database())),
            outbox: Arc::new(PgOutbox(database())),
        }
    }

    /// Who does what only one process should do at a time.
    #[must_use]
    pub fn tasks(&self) -> Arc<dyn TaskLeases> {
        Arc::new(PgTaskLeases(Arc::clone(&self.database)))
    }

    /// How many milliseconds the database's clock is ahead of `clock`, to within half of the time that
    /// the question takes (T3).
    ///
    /// # Errors
    /// [`StoreFault::Unavailable`] without an answer.
    pub async fn clock_offset(&self, clock: &dyn Clock) -> Result<i64, StoreFault> {
        let before = clock.now().0;
        let there: i64 = self.database.read_one(query(DATABASE_TIME)).await?;
        let after = clock.now().0;
        Ok(there - (before + after) / 2)
    }

    /// Closes every connection once its transaction is through. Calls through ports that are still
    /// held fail as `Unavailable`.
    pub async fn close(&self) {
        self.database.pool.close().await;
    }
}

impl fmt::Debug for PgStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgStore").finish_non_exhaustive()
    }
}

impl Database {
    async fn schema_state(&self) -> Result<SchemaState, Failure> {
        let mut applied = BTreeSet::new();
        if self.read_one(query(HAS_HISTORY).bind(HISTORY_TABLE)).await? {
            for row in self.read(query(APPLIED)).await? {
                applied.insert(column::<String>(&row, 0)?);
            }
        }
        Ok(SchemaState::of(&applied))
    }

    /// Reads the first column of the one row.
    pub(crate) async fn read_one<T>(&self, query: Query<'_>) -> Result<T, Failure>
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        let rows = self.read(query).await?;
        let row = rows.first().ok_or(Failure::Forbidden("an answer is empty"))?;
        column(row, 0)
    }
}
