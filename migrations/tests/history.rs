//! The runner on a real file: idempotent, one at a time, cautious.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use kefu_migrations::{MigrateError, SchemaState, migrate, schema_state};
use sea_orm_migration::sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use tempfile::TempDir;

async fn connect(folder: &Path) -> DatabaseConnection {
    let url = format!("sqlite:{}?mode=rwc", folder.join("kefu.db").display());
    Database::connect(url).await.unwrap()
}

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let database = connect(folder.path()).await;
    let pending = [
        "m20261130_000001_chat",
        "m20261130_000002_cluster",
        "m20261201_000003_console",
        "m20261201_000004_search",
    ];
    let pending = pending.map(str::to_owned).to_vec();
    assert_eq!(schema_state(&database).await.unwrap(), SchemaState::Pending(pending));
    for _ in 0..2 {
        migrate(&database).await.unwrap();
        assert_eq!(schema_state(&database).await.unwrap(), SchemaState::Current);
    }
}

/// What an earlier version wrote is kept, and brought to this version's shape.
#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up() {
    let folder = TempDir::new().unwrap();
    let database = connect(folder.path()).await;
    let first = [
        include_str!("../src/sqlite/m20261130_000001_chat.sql"),
        "CREATE TABLE seaql_migrations (version VARCHAR PRIMARY KEY, applied_at BIGINT NOT NULL)",
        "INSERT INTO seaql_migrations VALUES ('m20261130_000001_chat', 0)",
        "INSERT INTO cg_chat_agent VALUES ('a1', 'Ann', NULL, 'online', 5, 3, 7, 1, 2, NULL)",
        "INSERT INTO cg_chat_session (id, user_id, user_name, status, source, priority, last_seq, \
         version, started_at, queued_at) VALUES (5, 'u1', 'Bo', 0, '', 0, 0, 1, 0, 0)",
    ];
    for sql in first {
        database.execute_unprepared(sql).await.unwrap();
    }
    migrate(&database).await.unwrap();
    assert_eq!(schema_state(&database).await.unwrap(), SchemaState::Current);
    let kept = "UPDATE cg_chat_agent SET version = version + 1 \
         WHERE admin_id = 'a1' AND active_sessions = 3 AND version = 0";
    assert_eq!(database.execute_unprepared(kept).await.unwrap().rows_affected(), 1);
    let to_index = "UPDATE cg_chat_indexed SET indexed_at = 1 \
         WHERE session_id = 5 AND upto = 0 AND is_final = 0";
    let waits = database.execute_unprepared(to_index).await.unwrap().rows_affected();
    assert_eq!(waits, 1, "what was said before can be searched too");
}

#[tokio::test]
async fn two_at_once_migrate_once() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (connect(folder.path()).await, connect(folder.path()).await);
    let (first, second) = tokio::join!(migrate(&one), migrate(&two));
    first.unwrap();
    second.unwrap();
    assert_eq!(schema_state(&one).await.unwrap(), SchemaState::Current);
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused_untouched() {
    let folder = TempDir::new().unwrap();
    let database = connect(folder.path()).await;
    migrate(&database).await.unwrap();
    let later = "INSERT INTO seaql_migrations VALUES ('m20990101_000001_later', 0)";
    database.execute_unprepared(later).await.unwrap();
    let unknown = SchemaState::Unknown("m20990101_000001_later".to_owned());
    assert_eq!(schema_state(&database).await.unwrap(), unknown);
    let refused = migrate(&database).await;
    assert!(matches!(refused, Err(MigrateError::UnknownSchema(_))), "{refused:?}");
}

/// What stands in the way is reported, and nothing half-made stays behind.
#[tokio::test]
async fn a_failed_migration_leaves_the_file_as_it_was() {
    let folder = TempDir::new().unwrap();
    let database = connect(folder.path()).await;
    database.execute_unprepared("CREATE TABLE cg_chat_outbox (x)").await.unwrap();
    let refused = migrate(&database).await;
    assert!(matches!(refused, Err(MigrateError::Database(_))), "{refused:?}");
    let table = database.execute_unprepared("SELECT * FROM cg_chat_session").await;
    assert!(table.is_err(), "rolled back");
    assert!(matches!(schema_state(&database).await.unwrap(), SchemaState::Pending(_)));
}
