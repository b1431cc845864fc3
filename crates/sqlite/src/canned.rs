//! [`CannedStore`].

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use kefu_console::{CannedDecision, CannedReply, CannedStore, CannedVerdict, Shelf};
use kefu_core::{IdSource, StoreFault};
use kefu_entities::canned::{Entity, Model, admin_id};
use sea_orm::{DatabaseTransaction, Value};

use crate::error::Failure;
use crate::open::Database;
use crate::rows;
use crate::writer::{Outcome, Work};

/// `IS`, since the team's have no owner.
const SHELF: &str = "SELECT * FROM cg_chat_canned WHERE admin_id IS ?1 ORDER BY id";
const SHELVES: &str = "SELECT * FROM cg_chat_canned AS c \
     WHERE EXISTS (SELECT 1 FROM json_each(?1) AS j WHERE j.value IS c.admin_id) ORDER BY id";
const DELETE: &str = "DELETE FROM cg_chat_canned WHERE id = ?1";

static UPSERT: LazyLock<String> = LazyLock::new(|| rows::upsert_sql::<Entity>("id"));

/// Canned replies in SQLite.
pub(crate) struct SqliteCannedStore(pub(crate) Arc<Database>);

#[async_trait]
impl CannedStore for SqliteCannedStore {
    async fn change(
        &self,
        shelf: &Shelf,
        decide: CannedDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<CannedVerdict, StoreFault> {
        self.0.writer.transact("canned_change", &Change { shelf, decide, ids }).await
    }

    async fn list(&self, shelves: &[Shelf]) -> Result<Vec<CannedReply>, StoreFault> {
        let shelves: Vec<_> = shelves.iter().map(admin_id).collect();
        let values = [rows::json(&shelves)?];
        Ok(rows::committed::<Entity, _>(&self.0.readers, SHELVES, values).await?)
    }
}

struct Change<'a> {
    shelf: &'a Shelf,
    decide: CannedDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Change<'_> {
    type Output = CannedVerdict;

    async fn run(
        &self,
        transaction: &DatabaseTransaction,
    ) -> Result<Outcome<CannedVerdict>, Failure> {
        let shelf: Value = admin_id(self.shelf).into();
        let present: Vec<CannedReply> =
            rows::locked::<Entity, _>(transaction, SHELF, [shelf]).await?;
        let verdict = (self.decide)(&present, self.ids);
        match &verdict {
            CannedVerdict::Write(reply) => {
                rows::write(transaction, &UPSERT, &[Model::from(reply)]).await?;
            }
            CannedVerdict::Remove(id) => {
                rows::execute(transaction, DELETE, [id.get().into()]).await?;
            }
            CannedVerdict::Keep(_) | CannedVerdict::Refuse(_) => {
                return Ok(Outcome::Leave(verdict));
            }
        }
        Ok(Outcome::Commit(verdict))
    }
}
