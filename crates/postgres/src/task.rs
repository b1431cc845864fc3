//! [`TaskLeases`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{NodeName, StoreFault};
use kefu_desk::{Task, TaskLeases};

use crate::error::Failure;
use crate::open::Database;
use crate::outbox::Execute;
use crate::rows::{column, query};
use crate::transaction::{Outcome, Rows as _, Transaction, Work};
use crate::worker::milliseconds;

/// One statement, so that of two takers the second sees the first.
const HOLD: &str = "INSERT INTO cg_lease AS l (name, holder, epoch, expires_at) \
     VALUES ($1, $2, 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $3) \
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at, \
         epoch = l.epoch + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END \
     WHERE l.holder = excluded.holder \
        OR l.expires_at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint \
     RETURNING epoch";
const RELEASE: &str = "UPDATE cg_lease SET expires_at = 0 WHERE name = $1 AND holder = $2";

/// Task leases in PostgreSQL, by its clock.
pub(crate) struct PgTaskLeases(pub(crate) Arc<Database>);

#[async_trait]
impl TaskLeases for PgTaskLeases {
    async fn hold(
        &self,
        task: Task,
        holder: &NodeName,
        ttl: Duration,
    ) -> Result<Option<i64>, StoreFault> {
        self.0.transact("task_hold", &Hold { task, holder, ttl }).await
    }

    async fn release(&self, task: Task, holder: &NodeName) -> Result<(), StoreFault> {
        let work = Execute(&|| query(RELEASE).bind(task.as_str()).bind(holder.to_string()));
        self.0.transact("task_release", &work).await?;
        Ok(())
    }
}

struct Hold<'a> {
    task: Task,
    holder: &'a NodeName,
    ttl: Duration,
}

impl Work for Hold<'_> {
    type Output = Option<i64>;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Option<i64>>, Failure> {
        let hold = query(HOLD)
            .bind(self.task.as_str())
            .bind(self.holder.as_str())
            .bind(milliseconds(self.ttl));
        match transaction.query(hold).await?.first() {
            Some(row) => Ok(Outcome::Commit(Some(column(row, 0)?))),
            None => Ok(Outcome::Leave(None)),
        }
    }
}
