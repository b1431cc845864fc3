//! [`Outbox`], and how other ports' transactions write to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{EventId, StoreFault, Timestamp};
use kefu_entities::outbox::{Entity, Model};
use kefu_events::{Envelope, Outbox, SCHEMA_VERSION};

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::open::Database;
use crate::rows::{self, Query, query};
use crate::transaction::{Outcome, Transaction, Work};

/// Rows of a newer shape are left to the version that knows them (N1).
const UNCONFIRMED: &str = "SELECT * FROM cg_chat_outbox \
     WHERE confirmed_at IS NULL AND id > $1 AND time < $2 AND schema_version <= $3 \
     ORDER BY id LIMIT $4";
const COUNT: &str = "SELECT count(*) FROM ( \
     SELECT 1 FROM cg_chat_outbox WHERE confirmed_at IS NULL LIMIT $1) AS waiting";
const CHANGES: &str = "SELECT * FROM cg_chat_outbox \
     WHERE id > $1 AND event_type <> 'message_stored' AND schema_version <= $2 \
     ORDER BY id LIMIT $3";
/// Without locking first, which would write every row twice: who confirms the same rows at once, a relay
/// beside a node that it takes for dead, names them in the same order, and is tried again.
const CONFIRM: &str = "UPDATE cg_chat_outbox SET confirmed_at = $2 \
     WHERE id = ANY($1) AND confirmed_at IS NULL";
/// The newest row stays: new ids must start above every id ever stored, trimmed ones included (T3).
/// Rows that another trimmer is at are left to it.
const TRIM: &str = "DELETE FROM cg_chat_outbox WHERE id IN ( \
     SELECT id FROM cg_chat_outbox \
     WHERE confirmed_at < $1 AND id < (SELECT max(id) FROM cg_chat_outbox) \
     ORDER BY confirmed_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Committed events in PostgreSQL.
pub(crate) struct PgOutbox(pub(crate) Arc<Database>);

#[async_trait]
impl Outbox for PgOutbox {
    async fn list_unconfirmed(
        &self,
        before: Timestamp,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreFault> {
        let list = query(UNCONFIRMED)
            .bind(after.map_or(0, EventId::get))
            .bind(before.0)
            .bind(i32::from(SCHEMA_VERSION))
            .bind(i64::from(limit));
        Ok(rows::committed::<Entity, _>(&self.0, list).await?)
    }

    async fn count_unconfirmed(&self, limit: u32) -> Result<u32, StoreFault> {
        let counted = self.0.read(query(COUNT).bind(i64::from(limit))).await?;
        let count: i64 = counted.first().map_or(Ok(0), |row| rows::column(row, 0))?;
        Ok(u32::try_from(count).unwrap_or(limit))
    }

    async fn list_changes(&self, after: i64, limit: u32) -> Result<Vec<Envelope>, StoreFault> {
        let list =
            query(CHANGES).bind(after).bind(i32::from(SCHEMA_VERSION)).bind(i64::from(limit));
        Ok(rows::committed::<Entity, _>(&self.0, list).await?)
    }

    async fn confirm(&self, ids: &[EventId], now: Timestamp) -> Result<(), StoreFault> {
        if ids.is_empty() {
            return Ok(());
        }
        let ids: BTreeSet<i64> = ids.iter().map(|id| id.get()).collect();
        let ids: Vec<i64> = ids.into_iter().collect();
        let work = Execute(&|| query(CONFIRM).bind(ids.clone()).bind(now.0));
        self.0.transact("outbox_confirm", &work).await?;
        Ok(())
    }

    async fn trim(&self, confirmed_before: Timestamp, limit: u32) -> Result<u64, StoreFault> {
        let work = Execute(&|| query(TRIM).bind(confirmed_before.0).bind(i64::from(limit)));
        self.0.transact("outbox_trim", &work).await
    }
}

/// One statement; the answer is how many rows it wrote.
pub(crate) struct Execute<'a>(pub(crate) &'a (dyn Fn() -> Query<'static> + Sync));

impl Work for Execute<'_> {
    type Output = u64;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<u64>, Failure> {
        match transaction.execute((self.0)()).await? {
            0 => Ok(Outcome::Leave(0)),
            written => Ok(Outcome::Commit(written)),
        }
    }
}

/// Writes events with what made them true.
pub(crate) fn add_events(bulk: &mut Bulk, events: &[Envelope]) -> Result<(), Failure> {
    let models = events.iter().map(Model::try_from).collect::<Result<Vec<_>, _>>()?;
    bulk.insert::<Entity>(&models)
}
