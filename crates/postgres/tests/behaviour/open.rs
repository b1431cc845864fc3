//! Opening and migrating: what is refused, how clearly, and what waits.

use std::time::Duration;

use kefu_core::{Clock, ManualClock, StoreFault, SystemClock};
use kefu_postgres::{OpenError, PgOptions, PgStore};
use kefu_testkit::server::postgres;
use kefu_testkit::{World, race};

use crate::{Fixture, support};

async fn open(url: &str) -> Result<PgStore, OpenError> {
    let acquire_timeout = Duration::from_millis(300);
    PgStore::connect(url, PgOptions { acquire_timeout, ..support::options() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_tables_is_refused() {
    let database = tokio::task::block_in_place(|| postgres::shared().empty_database());
    let refused = open(&database.url()).await;
    assert!(matches!(&refused, Err(OpenError::Pending(names)) if names.len() > 1), "{refused:?}");
    PgStore::migrate(&database.url()).await.unwrap();
    open(&database.url()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lacks_the_last_migration_is_refused() {
    let database = support::database().await;
    database.query("DELETE FROM seaql_migrations WHERE version = 'm20261130_000002_cluster'");
    let refused = open(&database.url()).await;
    let missing = ["m20261130_000002_cluster"];
    assert!(matches!(&refused, Err(OpenError::Pending(names)) if *names == missing), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_of_a_newer_version_is_refused() {
    let database = support::database().await;
    database.query("INSERT INTO seaql_migrations VALUES ('m20990101_000001_later', 0)");
    for refused in
        [open(&database.url()).await.err(), PgStore::migrate(&database.url()).await.err()]
    {
        assert!(
            matches!(&refused, Some(OpenError::UnknownSchema(name)) if name == "m20990101_000001_later"),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_migrators_at_once_one_works_and_all_succeed() {
    let database = tokio::task::block_in_place(|| postgres::shared().empty_database());
    let url = database.url();
    let migrated = race(6, |_| {
        let url = url.clone();
        async move { PgStore::migrate(&url).await }
    })
    .await;
    assert!(migrated.iter().all(Result::is_ok), "{migrated:?}");
    open(&database.url()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_server_or_database_is_unreachable() {
    let nobody = open("postgres://postgres@127.0.0.1:9/nobody").await;
    assert!(matches!(nobody, Err(OpenError::Unreachable(_))), "{nobody:?}");
    let url = tokio::task::block_in_place(|| postgres::shared().url("no_such_database"));
    let missing = open(&url).await;
    assert!(matches!(missing, Err(OpenError::Unreachable(_))), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_answers_unavailable() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    fixture.store.close().await;
    let write = fixture.world.try_open(&kefu_testkit::build::user("u2", 0)).await;
    assert!(matches!(write, Err(StoreFault::Unavailable { .. })), "{write:?}");
    let read = fixture.world.stores.sessions.find(session.id).await;
    assert!(matches!(read, Err(StoreFault::Unavailable { .. })), "{read:?}");
}

/// Several tenants are several schemas of one database, each with tables of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_share_a_database_in_schemas_of_their_own() {
    let database = tokio::task::block_in_place(|| postgres::shared().empty_database());
    let mut worlds = Vec::new();
    for tenant in ["north", "south"] {
        database.query(&format!("CREATE SCHEMA {tenant}"));
        let url = format!("{}?options=-csearch_path%3D{tenant}", database.url());
        PgStore::migrate(&url).await.unwrap();
        worlds.push(World::new(open(&url).await.unwrap().stores()));
    }
    worlds[0].open("u1", 0).await;
    assert_eq!(worlds[0].stores.line.front(9).await.unwrap().total, 1);
    assert_eq!(worlds[1].stores.line.front(9).await.unwrap().total, 0);
}

/// T3: a node compares its clock with the database's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clocks_are_compared() {
    let Fixture { store, .. } = Fixture::start().await;
    let near = store.clock_offset(&SystemClock::new()).await.unwrap();
    assert!(near.abs() < 2_000, "{near}");
    let clock = ManualClock::default();
    clock.step_wall(SystemClock::new().now().0 - clock.now().0 - 60_000);
    let behind = store.clock_offset(&clock).await.unwrap();
    assert!((58_000..120_000).contains(&behind), "{behind}");
}
