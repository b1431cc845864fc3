//! One transaction: begun with its limits, tried again after a conflict, committed or given up.

use kefu_core::StoreFault;
use sea_orm::sqlx;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgQueryResult, PgRow, Postgres};
use sqlx::{AssertSqlSafe, Connection};
use tracing::Instrument as _;

use crate::connect::PgOptions;
use crate::error::Failure;
use crate::open::Database;
use crate::rows::Query;
use crate::timer::Timer;
use crate::worker::{Held, holds};

/// Tries of one transaction that others keep in the way of.
const ATTEMPTS: u32 = 5;

/// What happens inside one transaction. Runs again after a conflict.
pub(crate) trait Work: Sync {
    /// What the caller gets once it is committed.
    type Output: Send;

    /// Reads, decides and writes.
    fn run(
        &self,
        transaction: &mut Transaction,
    ) -> impl Future<Output = Result<Outcome<Self::Output>, Failure>> + Send;
}

/// How a transaction ends when nothing failed.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// Something was written.
    Commit(T),
    /// Nothing was, so there is nothing to flush.
    Leave(T),
}

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    inner: sqlx::Transaction<'static, Postgres>,
    /// Whether statements are kept prepared.
    prepare: bool,
    /// The worker id under which ids are made here, as it was before any was made (T3).
    pub(crate) lease: Held,
}

/// Where statements run.
pub(crate) trait Rows: Send {
    /// Runs a statement; gives its rows.
    fn query(
        &mut self,
        query: Query<'_>,
    ) -> impl Future<Output = Result<Vec<PgRow>, Failure>> + Send;
}

impl Rows for Transaction {
    async fn query(&mut self, query: Query<'_>) -> Result<Vec<PgRow>, Failure> {
        // Collected, never streamed, so that the connection is at rest between two statements.
        Ok(query.persistent(self.prepare).fetch_all(&mut *self.inner).await?)
    }
}

/// A connection on which each statement commits by itself.
pub(crate) struct Autocommit<'a> {
    connection: PoolConnection<Postgres>,
    options: &'a PgOptions,
}

impl Rows for Autocommit<'_> {
    async fn query(&mut self, query: Query<'_>) -> Result<Vec<PgRow>, Failure> {
        let read = query.fetch_all(&mut *self.connection);
        let read = tokio::time::timeout(self.options.answer_timeout, read).await;
        let read = read.map_err(|_| Failure::Silent)?.map_err(Failure::Driver);
        if let Err(failure) = &read {
            forget_stale(&mut self.connection, failure).await;
        }
        read
    }
}

impl Autocommit<'_> {
    /// Runs a statement that writes. Only a refusal tells that it wrote nothing.
    ///
    /// Without `SET LOCAL`: the statement must not wait for rows, or only as long as it takes others to
    /// commit, who have limits of their own.
    pub(crate) async fn write(&mut self, query: Query<'_>) -> Result<Vec<PgRow>, Failure> {
        let written = query.fetch_all(&mut *self.connection);
        let written = tokio::time::timeout(self.options.answer_timeout, written).await;
        let written = written.map_err(|_| Failure::SilentCommit)?.map_err(Failure::Commit);
        if let Err(failure) = &written {
            forget_stale(&mut self.connection, failure).await;
        }
        written
    }
}

impl Transaction {
    /// Runs a statement; says how many rows it wrote.
    pub(crate) async fn execute(&mut self, query: Query<'_>) -> Result<u64, Failure> {
        let written: PgQueryResult =
            query.persistent(self.prepare).execute(&mut *self.inner).await?;
        Ok(written.rows_affected())
    }
}

impl Database {
    /// Runs `work` as one transaction. `operation` names it in metrics and traces.
    pub(crate) async fn transact<W: Work>(
        &self,
        operation: &'static str,
        work: &W,
    ) -> Result<W::Output, StoreFault> {
        let timer = Timer::start();
        let span = tracing::info_span!("transaction", operation);
        let done = self.repeat(operation, work).instrument(span).await;
        timer.record(operation);
        done
    }

    async fn repeat<W: Work>(
        &self,
        operation: &'static str,
        work: &W,
    ) -> Result<W::Output, StoreFault> {
        let mut attempt = 1;
        loop {
            // Noted before any id is made (T3).
            let lease = self.worker.held();
            let failure = match self.attempt(work, lease).await {
                Ok(output) => return Ok(output),
                Err(failure) => self.judged(failure, lease).await,
            };
            if matches!(failure, Failure::LeaseLost) {
                self.worker.refused();
            }
            if attempt == ATTEMPTS || !failure.is_transient() {
                return Err(failure.into());
            }
            attempt += 1;
            metrics::counter!("kefu_store_retries_total", "operation" => operation).increment(1);
        }
    }

    /// A refused row is no fault of its own when another node makes the same ids by now (T3).
    async fn judged(&self, failure: Failure, lease: Held) -> Failure {
        let Held::Leased { worker, epoch } = lease else { return failure };
        if !failure.is_about_data() {
            return failure;
        }
        let sql = format!("SELECT {}", holds("$1", "$2"));
        let look = sqlx::query(AssertSqlSafe(sql)).bind(i32::from(worker.get())).bind(epoch);
        match self.read_one(look).await {
            Ok(true) => failure,
            Ok(false) => Failure::LeaseLost,
            Err(silence) => silence,
        }
    }

    async fn attempt<W: Work>(&self, work: &W, lease: Held) -> Result<W::Output, Failure> {
        let limit = self.options.answer_timeout;
        let worked = tokio::time::timeout(limit, async {
            let mut transaction = self.begin(lease).await?;
            match work.run(&mut transaction).await {
                Ok(outcome) => Ok((transaction, outcome)),
                Err(failure) => {
                    forget_stale(&mut transaction.inner, &failure).await;
                    Err(failure)
                }
            }
        });
        // Dropped half-way, a transaction is rolled back before its connection is used again.
        let (transaction, outcome) = worked.await.map_err(|_| Failure::Silent)??;
        match outcome {
            Outcome::Commit(output) => {
                let commit = tokio::time::timeout(limit, transaction.inner.commit());
                commit.await.map_err(|_| Failure::SilentCommit)?.map_err(Failure::Commit)?;
                Ok(output)
            }
            Outcome::Leave(output) => {
                // Nothing was written; how the rollback ends tells the caller nothing.
                drop(transaction);
                Ok(output)
            }
        }
    }

    async fn begin(&self, lease: Held) -> Result<Transaction, Failure> {
        let inner = self.pool.begin_with(AssertSqlSafe(self.begin_sql.as_str())).await?;
        Ok(Transaction { inner, prepare: self.prepares(), lease })
    }

    /// Reads what is committed, outside any transaction of the caller's.
    pub(crate) async fn read(&self, query: Query<'_>) -> Result<Vec<PgRow>, Failure> {
        let read = tokio::time::timeout(self.options.answer_timeout, self.read_now(query));
        read.await.map_err(|_| Failure::Silent)?
    }

    async fn read_now(&self, query: Query<'_>) -> Result<Vec<PgRow>, Failure> {
        if self.prepares() {
            let mut connection = self.pool.acquire().await?;
            let read = query.fetch_all(&mut *connection).await.map_err(Failure::from);
            if let Err(failure) = &read {
                forget_stale(&mut connection, failure).await;
            }
            return read;
        }
        // Describing and running an unnamed statement are two messages, between which a pooler may
        // change the connection, except inside a transaction.
        self.begin(Held::Unchecked).await?.query(query).await
    }

    /// A connection outside any transaction. Only where statements are kept prepared: an unnamed one is
    /// two messages, between which a pooler may change the connection.
    pub(crate) async fn autocommit(&self) -> Result<Autocommit<'_>, Failure> {
        let connection = self.pool.acquire().await?;
        Ok(Autocommit { connection, options: &self.options })
    }

    pub(crate) fn prepares(&self) -> bool {
        self.options.statement_cache > 0
    }
}

async fn forget_stale(connection: &mut PgConnection, failure: &Failure) {
    if failure.is_stale() {
        // A failure shows itself again on the connection's next use.
        let _ = connection.clear_cached_statements().await;
    }
}
