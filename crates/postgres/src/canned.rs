//! [`CannedStore`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_console::{CannedDecision, CannedReply, CannedStore, CannedVerdict, Shelf};
use kefu_core::{IdSource, StoreFault};
use kefu_entities::canned::{Entity, Model, admin_id};

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::open::Database;
use crate::rows::{self, query};
use crate::transaction::{Outcome, Transaction, Work};

/// One change at a time: a shelf is read as a whole, and an empty one has no row to lock. Changes are rare, and
/// this lets readers through.
const LOCK: &str = "LOCK TABLE cg_chat_canned IN SHARE ROW EXCLUSIVE MODE";
const SHELF: &str =
    "SELECT * FROM cg_chat_canned WHERE admin_id IS NOT DISTINCT FROM $1 ORDER BY id";
const SHELVES: &str = "SELECT * FROM cg_chat_canned \
     WHERE admin_id = ANY($1) OR ($2 AND admin_id IS NULL) ORDER BY id";
const DELETE: &str = "DELETE FROM cg_chat_canned WHERE id = $1";

/// The columns that never change.
const GUARD: [&str; 2] = ["id", "admin_id"];

/// Canned replies in PostgreSQL.
pub(crate) struct PgCannedStore(pub(crate) Arc<Database>);

#[async_trait]
impl CannedStore for PgCannedStore {
    async fn change(
        &self,
        shelf: &Shelf,
        decide: CannedDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<CannedVerdict, StoreFault> {
        self.0.transact("canned_change", &Change { shelf, decide, ids }).await
    }

    async fn list(&self, shelves: &[Shelf]) -> Result<Vec<CannedReply>, StoreFault> {
        let own: Vec<String> = shelves.iter().filter_map(admin_id).collect();
        let list = query(SHELVES).bind(own).bind(shelves.contains(&Shelf::Team));
        Ok(rows::committed::<Entity, _>(&self.0, list).await?)
    }
}

struct Change<'a> {
    shelf: &'a Shelf,
    decide: CannedDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Change<'_> {
    type Output = CannedVerdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<CannedVerdict>, Failure> {
        transaction.execute(query(LOCK)).await?;
        let shelf = query(SHELF).bind(admin_id(self.shelf));
        let present: Vec<CannedReply> = rows::read::<Entity, _>(transaction, shelf).await?;
        let verdict = (self.decide)(&present, self.ids);
        match &verdict {
            CannedVerdict::Write(reply) => {
                let mut bulk = Bulk::default();
                match present.iter().any(|before| before.id == reply.id) {
                    true => {
                        let otherwise = "a canned reply changes its shelf";
                        bulk.update::<Entity>(&[Model::from(reply)], &GUARD, otherwise)?;
                    }
                    false => bulk.insert::<Entity>(&[Model::from(reply)])?,
                }
                bulk.run(transaction).await?;
            }
            CannedVerdict::Remove(id) => {
                transaction.execute(query(DELETE).bind(id.get())).await?;
            }
            CannedVerdict::Keep(_) | CannedVerdict::Refuse(_) => {
                return Ok(Outcome::Leave(verdict));
            }
        }
        Ok(Outcome::Commit(verdict))
    }
}
