//! [`Outbox`], and how other ports' transactions write to it.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use kefu_core::{EventId, StoreFault, Timestamp};
use kefu_entities::outbox::{Entity, Model};
use kefu_events::{Envelope, Outbox, SCHEMA_VERSION};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, Value};

use crate::error::Failure;
use crate::open::Database;
use crate::rows;
use crate::writer::{Outcome, Work};

/// Rows of a newer shape are left to the version that knows them (N1).
const UNCONFIRMED: &str = "SELECT * FROM cg_chat_outbox \
     WHERE confirmed_at IS NULL AND id > ?1 AND time < ?2 AND schema_version <= ?3 \
     ORDER BY id LIMIT ?4";
const COUNT: &str = "SELECT count(*) FROM ( \
     SELECT 1 FROM cg_chat_outbox WHERE confirmed_at IS NULL LIMIT ?1)";
const CHANGES: &str = "SELECT * FROM cg_chat_outbox \
     WHERE id > ?1 AND event_type <> 'message_stored' AND schema_version <= ?2 \
     ORDER BY id LIMIT ?3";
const CONFIRM: &str = "UPDATE cg_chat_outbox SET confirmed_at = ?2 \
     WHERE id IN (SELECT value FROM json_each(?1)) AND confirmed_at IS NULL";
// The newest row stays: new ids must start above every id ever stored, trimmed ones included (T3).
const TRIM: &str = "DELETE FROM cg_chat_outbox WHERE id IN ( \
     SELECT id FROM cg_chat_outbox \
     WHERE confirmed_at < ?1 AND id < (SELECT max(id) FROM cg_chat_outbox) \
     ORDER BY confirmed_at LIMIT ?2)";

static INSERT: LazyLock<String> = LazyLock::new(rows::insert_sql::<Entity>);

/// Committed events in SQLite.
pub(crate) struct SqliteOutbox(pub(crate) Arc<Database>);

#[async_trait]
impl Outbox for SqliteOutbox {
    async fn list_unconfirmed(
        &self,
        before: Timestamp,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreFault> {
        let after = after.map_or(0, EventId::get);
        let values = [after.into(), before.0.into(), SCHEMA_VERSION.into(), limit.into()];
        Ok(rows::committed::<Entity, _>(&self.0.readers, UNCONFIRMED, values).await?)
    }

    async fn count_unconfirmed(&self, limit: u32) -> Result<u32, StoreFault> {
        Ok(self.count(limit).await?)
    }

    async fn list_changes(&self, after: i64, limit: u32) -> Result<Vec<Envelope>, StoreFault> {
        let values = [after.into(), SCHEMA_VERSION.into(), limit.into()];
        Ok(rows::committed::<Entity, _>(&self.0.readers, CHANGES, values).await?)
    }

    async fn confirm(&self, ids: &[EventId], now: Timestamp) -> Result<(), StoreFault> {
        let work = Execute { sql: CONFIRM, values: [rows::json(ids)?, now.0.into()] };
        self.0.writer.transact("outbox_confirm", &work).await?;
        Ok(())
    }

    async fn trim(&self, confirmed_before: Timestamp, limit: u32) -> Result<u64, StoreFault> {
        let work = Execute { sql: TRIM, values: [confirmed_before.0.into(), limit.into()] };
        self.0.writer.transact("outbox_trim", &work).await
    }
}

impl SqliteOutbox {
    async fn count(&self, limit: u32) -> Result<u32, Failure> {
        let row = self.0.readers.query_one_raw(rows::statement(COUNT, [limit.into()])).await?;
        let count: i64 = row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(limit))
    }
}

/// One statement; the answer is how many rows it wrote.
struct Execute {
    sql: &'static str,
    values: [Value; 2],
}

impl Work for Execute {
    type Output = u64;

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<u64>, Failure> {
        match rows::execute(transaction, self.sql, self.values.clone()).await? {
            0 => Ok(Outcome::Leave(0)),
            written => Ok(Outcome::Commit(written)),
        }
    }
}

/// Writes events with what made them true.
pub(crate) async fn write_events(
    transaction: &DatabaseTransaction,
    events: &[Envelope],
) -> Result<(), Failure> {
    let models = events.iter().map(Model::try_from).collect::<Result<Vec<_>, _>>()?;
    rows::write(transaction, &INSERT, &models).await?;
    Ok(())
}
