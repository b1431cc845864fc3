//! Opening a file: what is created, what is refused, and how clearly.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::path::Path;

use kefu_sqlite::{OpenError, SqliteOptions, SqliteStore};
use kefu_testkit::World;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use tempfile::TempDir;

async fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, SqliteOptions::default()).await
}

/// A connection with none of kefu's settings, as an integrator's own program has.
async fn plain(path: &Path) -> DatabaseConnection {
    Database::connect(format!("sqlite:{}", path.display())).await.expect("a plain connection")
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    let store = open(&path).await.unwrap();
    let session = World::new(store.stores()).open("u1", 5).await;
    store.close().await;
    for _ in 0..2 {
        let store = open(&path).await.unwrap();
        assert_eq!(store.stores().sessions.find(session.id).await.unwrap(), Some(session.clone()));
        store.close().await;
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    open(&path).await.unwrap().close().await;
    let database = plain(&path).await;
    database
        .execute_unprepared("INSERT INTO seaql_migrations VALUES ('m20990101_000001_later', 0)")
        .await
        .unwrap();
    database.close().await.unwrap();
    let refused = open(&path).await;
    assert!(
        matches!(&refused, Err(OpenError::UnknownSchema(name)) if name == "m20990101_000001_later"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_file_in_use_is_refused_until_it_is_closed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    let first = open(&path).await.unwrap();
    let second = open(&path).await;
    assert!(matches!(second, Err(OpenError::InUse)), "{second:?}");
    first.close().await;
    open(&path).await.unwrap().close().await;
}

#[tokio::test]
async fn a_missing_folder_is_named_as_the_reason() {
    let folder = TempDir::new().unwrap();
    let missing = open(&folder.path().join("nowhere").join("kefu.db")).await;
    assert!(matches!(missing, Err(OpenError::Folder(_))), "{missing:?}");
}

/// A path that no permission makes writable, so that it holds for root too.
#[tokio::test]
async fn an_unwritable_folder_is_named_as_the_reason() {
    let unwritable = open(Path::new("/proc/kefu.db")).await;
    assert!(matches!(unwritable, Err(OpenError::Folder(_))), "{unwritable:?}");
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    std::fs::create_dir(&path).unwrap();
    let refused = open(&path).await;
    assert!(matches!(refused, Err(OpenError::Unwritable(_))), "{refused:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    let text = "this is a letter, not a database. ".repeat(300);
    std::fs::write(&path, &text).unwrap();
    let refused = open(&path).await;
    assert!(matches!(refused, Err(OpenError::Damaged(_))), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_closed_store_answers_unavailable() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder.path().join("kefu.db")).await.unwrap();
    let world = World::new(store.stores());
    let session = world.open("u1", 0).await;
    store.close().await;
    let user = kefu_testkit::build::user("u2", 0);
    let write = world.try_open(&user).await;
    assert!(matches!(write, Err(kefu_core::StoreFault::Unavailable { .. })), "{write:?}");
    let read = world.stores.sessions.find(session.id).await;
    assert!(matches!(read, Err(kefu_core::StoreFault::Unavailable { .. })), "{read:?}");
}
