//! The pool of connections, and how patient everything on them is.

use std::str::FromStr;
use std::time::Duration;

use sea_orm::sqlx;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

/// A connection that nobody used for so long is tested before the next use: a busy one shows by itself
/// that it is broken.
const TESTED_AFTER: Duration = Duration::from_secs(1);

/// How wide a store is, and how patient.
#[derive(Debug, Clone)]
pub struct PgOptions {
    /// Connections of this process. Two to four writers saturate a two-core server; the rest serves
    /// reads and those who wait for a row.
    pub max_connections: u32,
    /// How long a caller waits for a connection before the answer is `Unavailable`.
    pub acquire_timeout: Duration,
    /// Prepared statements kept per connection. 0 behind a pooler that gives every transaction another
    /// connection and keeps no prepared statements (pgbouncer before 1.21): each statement is then
    /// sent unnamed, and every read runs in a transaction of its own.
    pub statement_cache: usize,
    /// How long the server works on one statement of a transaction.
    pub statement_timeout: Duration,
    /// How long one statement waits for a row that somebody else holds.
    pub lock_timeout: Duration,
    /// How long the server keeps a transaction whose process says nothing: a frozen node holds its
    /// rows no longer than this.
    pub idle_timeout: Duration,
    /// How long a call waits for the server altogether, before the commit and for the commit: the
    /// limit that holds when the server or the way to it is frozen.
    pub answer_timeout: Duration,
}

impl Default for PgOptions {
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(3),
            statement_cache: 128,
            statement_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(10),
        }
    }
}

impl PgOptions {
    /// Begins a transaction and sets its limits, in one message. `SET LOCAL` ends with the
    /// transaction, so that nothing is left on a connection that a pooler gives to others.
    pub(crate) fn begin_sql(&self) -> String {
        format!(
            "BEGIN; SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            self.statement_timeout.as_millis(),
            self.lock_timeout.as_millis(),
            self.idle_timeout.as_millis()
        )
    }

    /// A pool whose first connection is open.
    pub(crate) async fn connect(&self, url: &str) -> Result<PgPool, sqlx::Error> {
        // A pooler refuses settings of a connection that it does not know how to keep.
        let settings = PgConnectOptions::from_str(url)?
            .extra_float_digits(None)
            .statement_cache_capacity(self.statement_cache)
            .application_name("kefu");
        PgPoolOptions::new()
            .max_connections(self.max_connections)
            .min_connections(1)
            .acquire_timeout(self.acquire_timeout)
            .idle_timeout(Duration::from_secs(600))
            .max_lifetime(None)
            // Testing every connection would cost every caller an answer. One that breaks in use shows
            // itself before anything is written, and the transaction is tried on another.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > TESTED_AFTER {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_with(settings)
            .await
    }
}
