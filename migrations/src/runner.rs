//! Brings a database to the schema of this build, or says why it cannot.

use std::collections::BTreeSet;

use sea_orm_migration::sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

use crate::m20261130_000001_chat::Chat;
use crate::m20261130_000002_cluster::Cluster;
use crate::m20261201_000003_console::Console;
use crate::m20261201_000004_search::Search;

/// The table in which the migrator keeps what was applied, its key being `version`.
pub const HISTORY_TABLE: &str = "seaql_migrations";

/// Lets one migrator at a time work on a PostgreSQL database; the others wait, up to the timeout that
/// precedes it. A lock of the transaction, since a pooler gives every transaction another connection.
const ONE_AT_A_TIME: &str = "SET LOCAL lock_timeout = '60s'; \
     SELECT pg_advisory_xact_lock(7163384600427066369)";

struct History;

impl MigratorTrait for History {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Chat), Box::new(Cluster), Box::new(Console), Box::new(Search)]
    }
}

/// Where a database stands against this build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// It has every migration of this build and no other.
    Current,
    /// It lacks these migrations.
    Pending(Vec<String>),
    /// It has this migration, which this build does not know: a newer kefu wrote it.
    Unknown(String),
}

/// Why a database could not be migrated. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A newer kefu wrote the database; working on it could damage it.
    #[error("the database has migration {0}, which this version does not know")]
    UnknownSchema(String),
    /// The database refused.
    #[error("the database could not be migrated")]
    Database(#[from] DbErr),
}

/// Reads where the database stands. Writes nothing.
///
/// # Errors
/// [`DbErr`] when the database cannot be read.
pub async fn schema_state(database: &DatabaseConnection) -> Result<SchemaState, DbErr> {
    let transaction = database.begin().await?;
    let state = state(&transaction).await;
    transaction.rollback().await?;
    state
}

/// Applies what is pending, all of it or nothing.
///
/// # Errors
/// [`MigrateError`]; the database is as it was.
pub async fn migrate(database: &DatabaseConnection) -> Result<(), MigrateError> {
    // The migrator takes no lock of its own. IMMEDIATE takes SQLite's write lock before the history
    // is read, so of two processes that start at once one migrates and the other finds it done; on
    // PostgreSQL an advisory lock does.
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = database.begin_with_options(options).await?;
    match apply_alone(&transaction).await {
        Ok(()) => Ok(transaction.commit().await?),
        Err(error) => {
            // What counts is why it failed; a failed rollback is repeated by closing the connection.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

async fn apply_alone(transaction: &DatabaseTransaction) -> Result<(), MigrateError> {
    if transaction.get_database_backend() == DbBackend::Postgres {
        transaction.execute_unprepared(ONE_AT_A_TIME).await?;
    }
    apply(transaction).await
}

async fn apply(transaction: &DatabaseTransaction) -> Result<(), MigrateError> {
    match state(transaction).await? {
        SchemaState::Current => Ok(()),
        SchemaState::Unknown(name) => Err(MigrateError::UnknownSchema(name)),
        SchemaState::Pending(_) => Ok(History::up(transaction, None).await?),
    }
}

async fn state(transaction: &DatabaseTransaction) -> Result<SchemaState, DbErr> {
    Ok(SchemaState::of(&applied(transaction).await?))
}

impl SchemaState {
    /// Where a database stands in which the migrations `applied` were applied.
    #[must_use]
    pub fn of(applied: &BTreeSet<String>) -> Self {
        let known: Vec<String> =
            History::migrations().iter().map(|migration| migration.name().to_owned()).collect();
        if let Some(unknown) = applied.iter().find(|name| !known.contains(name)) {
            return Self::Unknown(unknown.clone());
        }
        let pending: Vec<_> = known.into_iter().filter(|name| !applied.contains(name)).collect();
        if pending.is_empty() { Self::Current } else { Self::Pending(pending) }
    }
}

async fn applied(transaction: &DatabaseTransaction) -> Result<BTreeSet<String>, DbErr> {
    let manager = sea_orm_migration::SchemaManager::new(transaction);
    if !manager.has_table(HISTORY_TABLE).await? {
        return Ok(BTreeSet::new());
    }
    let models = History::get_migration_models(transaction).await?;
    Ok(models.into_iter().map(|model| model.version).collect())
}
