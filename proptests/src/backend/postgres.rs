//! PostgreSQL: a database for every test, copied from a migrated one.

use std::time::Duration;

use async_trait::async_trait;
use kefu_desk::Stores;
use kefu_postgres::{PgOptions, PgStore};
use kefu_testkit::Harness;
use kefu_testkit::server::postgres::{TestDatabase, shared};
use tokio::sync::OnceCell;

use super::{Backend, Sql};

/// `ON CONFLICT` needs an index to name, so the one behind 2.2 is not dropped but blinded: its keys
/// are never equal.
pub(crate) const BLIND: &str = "
    DROP INDEX cg_chat_session_open;
    CREATE FUNCTION never(text, text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
    CREATE FUNCTION later(text, text) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1';
    CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = never);
    CREATE OPERATOR CLASS blind FOR TYPE text USING btree AS
        OPERATOR 3 ===, FUNCTION 1 later(text, text);
    CREATE UNIQUE INDEX cg_chat_session_open ON cg_chat_session (user_id blind)
        WHERE status IN (0, 1);
    DROP INDEX cg_chat_message_seq;
    DROP INDEX cg_chat_message_key;
";

/// One database of the server that this process shares.
#[derive(Debug)]
pub struct Postgres {
    store: PgStore,
    sql: OnceCell<Sql>,
    database: TestDatabase<'static>,
}

/// A migrated database that nothing else uses.
pub(crate) async fn database() -> TestDatabase<'static> {
    // Of the process and not of the runtime: machines run on one thread each.
    let made = tokio::task::spawn_blocking(|| shared().database(migrate));
    made.await.expect("a database")
}

fn migrate(url: &str) {
    let migrated = tokio::runtime::Handle::current().block_on(PgStore::migrate(url));
    migrated.expect("migrated");
}

/// Few connections, since many tests share the server, and so patient that a busy machine fails no
/// property.
pub(crate) async fn connect(database: &TestDatabase<'_>) -> PgStore {
    let patience = Duration::from_secs(60);
    let options = PgOptions {
        max_connections: 8,
        acquire_timeout: patience,
        statement_timeout: patience,
        lock_timeout: patience,
        idle_timeout: patience,
        answer_timeout: patience,
        ..PgOptions::default()
    };
    PgStore::connect(&database.url(), options).await.expect("the database opens")
}

#[async_trait]
impl Harness for Postgres {
    async fn start() -> Self {
        let database = database().await;
        let store = connect(&database).await;
        Self { store, sql: OnceCell::new(), database }
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
impl Backend for Postgres {
    const CASES: u32 = 12;

    async fn sql(&self) -> Option<Sql> {
        Some(self.sql.get_or_init(|| Sql::open(self.database.url())).await.clone())
    }

    async fn unconstrained(&self) -> Stores {
        if let Some(sql) = self.sql().await {
            sql.execute(BLIND).await;
        }
        self.stores()
    }
}
