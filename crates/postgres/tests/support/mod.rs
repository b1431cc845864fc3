//! A database of its own for every case, on the server that this test binary shares.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use async_trait::async_trait;
use kefu_desk::Stores;
use kefu_postgres::{PgOptions, PgStore};
use kefu_testkit::Harness;
use kefu_testkit::server::postgres::{self, TestDatabase};

/// A migrated database that nothing else uses.
pub async fn database() -> TestDatabase<'static> {
    tokio::task::spawn_blocking(|| postgres::shared().database(migrate)).await.expect("a database")
}

/// Few connections, since many tests share the server.
pub fn options() -> PgOptions {
    PgOptions { max_connections: 8, ..PgOptions::default() }
}

fn migrate(url: &str) {
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(PgStore::migrate(url)).expect("migrated");
}

/// A store over a database of its own.
pub struct Private {
    database: TestDatabase<'static>,
    store: PgStore,
}

#[async_trait]
impl Harness for Private {
    async fn start() -> Self {
        let database = database().await;
        let store = PgStore::connect(&database.url(), options()).await.expect("opened");
        Self { database, store }
    }

    fn stores(&self) -> Stores {
        self.store.stores()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.store = PgStore::connect(&self.database.url(), options()).await.expect("opened again");
    }
}
