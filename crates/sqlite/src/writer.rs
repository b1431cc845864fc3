//! The one connection that writes, and the transactions on it.

use std::time::Duration;

use kefu_core::StoreFault;
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::connect::{Access, Target};
use crate::error::Failure;

/// Tries of one transaction while another process holds the file. Each waits out the busy timeout.
const ATTEMPTS: u32 = 3;

/// What happens inside one transaction. Runs again when the file was busy.
pub(crate) trait Work: Sync {
    /// What the caller gets once it is committed.
    type Output: Send;

    /// Reads, decides and writes.
    fn run(
        &self,
        transaction: &DatabaseTransaction,
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

/// Lends the writing connection to one transaction at a time, in the order of asking.
#[derive(Debug)]
pub(crate) struct Writer {
    target: Target,
    slot: Mutex<Slot>,
}

#[derive(Debug)]
struct Slot {
    connection: Option<DatabaseConnection>,
    /// Raised before a transaction begins, lowered only where the connection is known to be outside
    /// one. Found raised, it means that a transaction failed half-way or that its caller's future was
    /// dropped: the connection is then closed, which rolls back, and a new one opened.
    suspect: bool,
    closed: bool,
}

impl Writer {
    pub(crate) fn new(target: Target, connection: DatabaseConnection) -> Self {
        let slot = Slot { connection: Some(connection), suspect: false, closed: false };
        Self { target, slot: Mutex::new(slot) }
    }

    /// Runs `work` as one transaction. `operation` names it in metrics.
    pub(crate) async fn transact<W: Work>(
        &self,
        operation: &'static str,
        work: &W,
    ) -> Result<W::Output, StoreFault> {
        let mut attempt = 1;
        loop {
            let failure = match self.attempt(work).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            if attempt == ATTEMPTS || !failure.is_busy() {
                return Err(failure.into());
            }
            attempt += 1;
            metrics::counter!("kefu_store_retries_total", "operation" => operation).increment(1);
        }
    }

    async fn attempt<W: Work>(&self, work: &W) -> Result<W::Output, Failure> {
        let mut slot = self.lock().await?;
        let connection = slot.lend(&self.target).await?;
        let transaction = connection.begin_with_options(immediate()).await?;
        match work.run(&transaction).await {
            Ok(Outcome::Commit(output)) => {
                transaction.commit().await.map_err(Failure::Commit)?;
                slot.suspect = false;
                Ok(output)
            }
            Ok(Outcome::Leave(output)) => {
                transaction.rollback().await?;
                slot.suspect = false;
                Ok(output)
            }
            Err(failure) => {
                // SQLite ends a transaction by itself when the disk is full or fails; the driver does
                // not notice and could never begin another on this connection.
                let rolled_back = transaction.rollback().await.is_ok();
                slot.suspect = !(rolled_back && failure.is_about_data());
                Err(failure)
            }
        }
    }

    /// Waits for the running transaction, then refuses every later one.
    pub(crate) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        slot.closed = true;
        slot.discard().await;
    }

    async fn lock(&self) -> Result<MutexGuard<'_, Slot>, Failure> {
        // The mutex is fair: callers get the connection in the order in which they asked.
        let wait: Duration = self.target.acquire_timeout;
        tokio::time::timeout(wait, self.slot.lock()).await.map_err(|_| Failure::Crowded)
    }
}

impl Slot {
    /// A connection that is outside any transaction, under suspicion until proven clean again.
    async fn lend(&mut self, target: &Target) -> Result<DatabaseConnection, Failure> {
        if self.closed {
            return Err(Failure::Closed);
        }
        if self.suspect {
            metrics::counter!("kefu_store_writer_reopened_total").increment(1);
            tracing::warn!("a transaction did not end well; the writing connection is reopened");
            self.discard().await;
        }
        self.suspect = true;
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let connection = target.connect(Access::Write, 1).await?;
        self.connection = Some(connection.clone());
        Ok(connection)
    }

    async fn discard(&mut self) {
        if let Some(connection) = &self.connection {
            // Closing waits until the connection is back and a commit under way is through. A failure
            // to close leaves nothing to do: the handle is gone either way.
            let _ = connection.close_by_ref().await;
        }
        self.connection = None;
    }
}

fn immediate() -> TransactionOptions {
    TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    }
}

#[cfg(test)]
mod tests;
