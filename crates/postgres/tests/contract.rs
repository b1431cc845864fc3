//! The contracts of the SQL ports, stamped on PostgreSQL.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod support;

use async_trait::async_trait;
use kefu_desk::Stores;
use kefu_postgres::PgStore;
use kefu_testkit::Harness;
use kefu_testkit::server::postgres::TestDatabase;

struct Private {
    database: TestDatabase<'static>,
    store: PgStore,
}

async fn connect(database: &TestDatabase<'_>) -> PgStore {
    PgStore::connect(&database.url(), support::options()).await.expect("the database opens")
}

#[async_trait]
impl Harness for Private {
    async fn start() -> Self {
        let database = support::database().await;
        let store = connect(&database).await;
        Self { database, store }
    }

    fn stores(&self) -> Stores {
        self.store.stores()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.store = connect(&self.database).await;
    }
}

kefu_testkit::store_contract!(Private);
