//! [`CannedStore`].

use async_trait::async_trait;
use kefu_console::{CannedDecision, CannedReply, CannedStore, CannedVerdict, Shelf};
use kefu_core::{IdSource, StoreFault};

use crate::MemoryWorld;

#[async_trait]
impl CannedStore for MemoryWorld {
    async fn change(
        &self,
        shelf: &Shelf,
        decide: CannedDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<CannedVerdict, StoreFault> {
        let mut tables = self.begin().await;
        let verdict = decide(&tables.canned.on(std::slice::from_ref(shelf)), ids);
        match &verdict {
            CannedVerdict::Write(reply) => tables.write_canned(reply)?,
            CannedVerdict::Remove(id) => tables.canned.remove(*id),
            CannedVerdict::Keep(_) | CannedVerdict::Refuse(_) => {}
        }
        Ok(verdict)
    }

    async fn list(&self, shelves: &[Shelf]) -> Result<Vec<CannedReply>, StoreFault> {
        Ok(self.begin().await.canned.on(shelves))
    }
}
