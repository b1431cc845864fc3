//! A database of its own for every case, on the server that this test binary shares.

use std::time::Duration;

use kefu_postgres::{PgOptions, PgStore};
use kefu_testkit::server::postgres::{self, PostgresServer, TestDatabase};

/// A migrated database that nothing else uses.
pub(crate) async fn database() -> TestDatabase<'static> {
    database_of(postgres::shared()).await
}

/// A migrated database of `server`.
pub(crate) async fn database_of<'a>(server: &'a PostgresServer) -> TestDatabase<'a> {
    tokio::task::block_in_place(|| server.database(migrate))
}

fn migrate(url: &str) {
    let migrated = tokio::runtime::Handle::current().block_on(PgStore::migrate(url));
    migrated.expect("migrated");
}

/// Few connections, since many tests share the server, and so patient that a busy machine fails no
/// test that is not about patience.
pub(crate) fn options() -> PgOptions {
    let patience = Duration::from_secs(30);
    PgOptions {
        max_connections: 8,
        acquire_timeout: patience,
        statement_timeout: patience,
        lock_timeout: patience,
        idle_timeout: patience,
        answer_timeout: patience,
        ..PgOptions::default()
    }
}
