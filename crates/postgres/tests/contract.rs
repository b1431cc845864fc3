//! The contracts of the SQL ports and of task leases, stamped on PostgreSQL.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_desk::{Stores, TaskLeases};
use kefu_postgres::PgStore;
use kefu_testkit::server::postgres::TestDatabase;
use kefu_testkit::{Harness, TaskLeasesHarness};

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

#[async_trait]
impl TaskLeasesHarness for Private {
    async fn start() -> Self {
        <Self as Harness>::start().await
    }

    fn tasks(&self) -> Arc<dyn TaskLeases> {
        self.store.tasks()
    }

    /// The database's clock cannot be moved; the ends of the leases can.
    async fn advance(&self, by: Duration) {
        let by = by.as_millis();
        self.database.query(&format!("UPDATE cg_lease SET expires_at = expires_at - {by}"));
    }
}

kefu_testkit::store_contract!(Private);
kefu_testkit::task_leases_contract!(Private);
