//! What PostgreSQL adds to the contracts: schemas, leases, faults of the server and of the way to it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod faults;
mod guarded;
mod leases;
mod open;
mod proxy;
mod roundtrips;
mod schema;
#[path = "../support/mod.rs"]
mod support;
mod turns;

use kefu_postgres::PgStore;
use kefu_testkit::World;
use kefu_testkit::server::postgres::TestDatabase;

/// A world over a database of its own.
struct Fixture {
    database: TestDatabase<'static>,
    store: PgStore,
    world: World,
}

impl Fixture {
    async fn start() -> Self {
        let database = support::database().await;
        let store = connect(&database).await;
        let world = World::new(store.stores());
        Self { database, store, world }
    }

    fn messages(&self) -> i64 {
        self.database.query("SELECT count(*) FROM cg_chat_message").parse().unwrap()
    }
}

async fn connect(database: &TestDatabase<'_>) -> PgStore {
    PgStore::connect(&database.url(), support::options()).await.expect("the database opens")
}
