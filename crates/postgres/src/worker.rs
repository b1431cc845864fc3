//! The snowflake worker id of this node: leased, renewed, and taken anew when it was lost (T3).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kefu_core::{NodeName, SnowflakeIds, StoreFault, WorkerId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::Failure;
use crate::message::highest_id;
use crate::open::{Database, PgStore};
use crate::rows::{column, query};
use crate::transaction::{Outcome, Rows as _, Transaction, Work};

/// Takes the id that has been free longest. One whose lease ended less than ten seconds ago is not
/// free: clocks of nodes differ by up to five (T3), so that within that time its last holder may have
/// made ids of milliseconds that are still to come here; and what that holder was writing when its
/// lease ended is committed or given up by then.
const TAKE: &str = "UPDATE cg_worker SET node = $1, epoch = epoch + 1, \
         expires_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2 \
     WHERE worker_id = (SELECT worker_id FROM cg_worker WHERE worker_id > 0 AND \
         expires_at + 10000 < (extract(epoch FROM clock_timestamp()) * 1000)::bigint \
         ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED) \
     RETURNING worker_id, epoch";
/// Takes an id that nobody had. By chance, so that nodes which start at once rarely meet; 0 is the
/// embedded profile's.
const CREATE: &str = "INSERT INTO cg_worker (worker_id, node, epoch, expires_at) \
     SELECT n, $1, 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2 \
     FROM generate_series(1, 1023) AS n \
     WHERE NOT EXISTS (SELECT 1 FROM cg_worker WHERE worker_id = n) ORDER BY random() LIMIT 1 \
     ON CONFLICT (worker_id) DO NOTHING RETURNING worker_id, epoch";
/// Also an expired lease goes on while nobody else took the id.
const RENEW: &str = "UPDATE cg_worker \
     SET expires_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $3 \
     WHERE worker_id = $1 AND epoch = $2";
const RELEASE: &str = "UPDATE cg_worker \
     SET expires_at = least(expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) \
     WHERE worker_id = $1 AND epoch = $2";

/// Whether the worker id of parameter `worker` is leased under the epoch of parameter `epoch`, by the
/// database's clock.
pub(crate) fn holds(worker: &str, epoch: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM cg_worker WHERE worker_id = {worker} AND epoch = {epoch} \
         AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
    )
}

/// Under which worker id this process makes ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Held {
    /// Under one that nobody else can have: nothing is checked.
    #[default]
    Unchecked,
    /// Under a leased one: every write of ids checks it.
    Leased {
        /// The id.
        worker: WorkerId,
        /// Which lease of it.
        epoch: i64,
    },
    /// Under one that may be somebody else's by now: nothing with an id is written.
    Lost,
}

/// What every transaction asks before it makes ids.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    held: Mutex<Held>,
    /// A write found the lease expired or lost.
    refused: Notify,
}

impl Worker {
    pub(crate) fn held(&self) -> Held {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Asks for a renewal at once.
    pub(crate) fn refused(&self) {
        self.refused.notify_one();
    }
}

/// This node's lease of a worker id. Every write through the store's ports that holds ids checks it
/// and fails as `Unavailable` once somebody else has the id.
pub struct WorkerLease {
    database: Arc<Database>,
    node: NodeName,
    ttl: Duration,
}

impl PgStore {
    /// Leases a worker id for `node` until `ttl` after the last renewal; from now on what this store
    /// writes is checked against it.
    ///
    /// # Errors
    /// [`StoreFault::Unavailable`] when the database is, or when all 1023 ids are taken.
    pub async fn lease_worker(
        &self,
        node: &NodeName,
        ttl: Duration,
    ) -> Result<WorkerLease, StoreFault> {
        let database = Arc::clone(&self.database);
        let lease = WorkerLease { database, node: node.clone(), ttl };
        let held = lease.take().await?;
        lease.database.worker.set(held);
        Ok(lease)
    }
}

impl WorkerLease {
    /// The id under which this node makes ids now. `None` between losing one and getting the next.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        match self.database.worker.held() {
            Held::Leased { worker, .. } => Some(worker),
            Held::Unchecked | Held::Lost => None,
        }
    }

    /// Extends the lease. If somebody else has the id by now, takes another one and lets `ids` go on
    /// under it, above every id stored.
    ///
    /// # Errors
    /// [`StoreFault::Unavailable`]: not extended, or lost and not yet replaced.
    pub async fn renew(&self, ids: &SnowflakeIds) -> Result<(), StoreFault> {
        if let Held::Leased { worker, epoch } = self.database.worker.held() {
            let work = Extend { worker, epoch, sql: RENEW, ttl: Some(milliseconds(self.ttl)) };
            if self.database.transact("worker_renew", &work).await? {
                return Ok(());
            }
            tracing::warn!(worker = worker.get(), "the worker id was taken over by another node");
            metrics::counter!("kefu_worker_lost_total").increment(1);
        }
        // In this order a write can never pair ids of the old id with the new lease: it notes the
        // lease before ids are made for it.
        self.database.worker.set(Held::Lost);
        let held = self.take().await?;
        let highest = highest_id(&self.database).await?;
        if let Held::Leased { worker, .. } = held {
            ids.reassign(worker, highest);
        }
        self.database.worker.set(held);
        Ok(())
    }

    /// Renews until `stop`, three times a lease and whenever a write was refused; then gives the id
    /// back.
    pub async fn keep(self, ids: Arc<SnowflakeIds>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(self.ttl / 3) => {}
                () = self.database.worker.refused.notified() => {}
            }
            if let Err(fault) = self.renew(&ids).await {
                tracing::warn!(%fault, "the worker id could not be renewed");
            }
        }
        self.release().await;
    }

    /// Gives the id back. What is written later through this store fails, except what has no ids.
    pub async fn release(self) {
        let held = self.database.worker.held();
        self.database.worker.set(Held::Lost);
        if let Held::Leased { worker, epoch } = held {
            let work = Extend { worker, epoch, sql: RELEASE, ttl: None };
            if let Err(fault) = self.database.transact("worker_release", &work).await {
                tracing::info!(%fault, "the worker id stays leased until it expires");
            }
        }
    }

    async fn take(&self) -> Result<Held, StoreFault> {
        let take = Take { node: &self.node, ttl: milliseconds(self.ttl) };
        self.database.transact("worker_take", &take).await
    }
}

impl fmt::Debug for WorkerLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerLease").field("worker", &self.worker()).finish_non_exhaustive()
    }
}

struct Take<'a> {
    node: &'a NodeName,
    ttl: i64,
}

impl Work for Take<'_> {
    type Output = Held;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Held>, Failure> {
        for sql in [TAKE, CREATE] {
            let take = query(sql).bind(self.node.as_str()).bind(self.ttl);
            let taken = transaction.query(take).await?;
            let Some(row) = taken.first() else { continue };
            let id = u16::try_from(column::<i32>(row, 0)?).ok().map(WorkerId::new);
            let Some(Ok(worker)) = id else { return Err(Failure::NoWorkerId) };
            return Ok(Outcome::Commit(Held::Leased { worker, epoch: column(row, 1)? }));
        }
        Err(Failure::NoWorkerId)
    }
}

/// Moves the end of a lease; says whether it was still this one.
struct Extend {
    worker: WorkerId,
    epoch: i64,
    sql: &'static str,
    ttl: Option<i64>,
}

impl Work for Extend {
    type Output = bool;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<bool>, Failure> {
        let extend = query(self.sql).bind(i32::from(self.worker.get())).bind(self.epoch);
        let extend = match self.ttl {
            Some(ttl) => extend.bind(ttl),
            None => extend,
        };
        match transaction.execute(extend).await? {
            0 => Ok(Outcome::Leave(false)),
            _ => Ok(Outcome::Commit(true)),
        }
    }
}

pub(crate) fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
