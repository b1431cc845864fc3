//! `cg_chat_canned`.

use std::collections::BTreeMap;

use kefu_console::{CannedReply, Shelf};
use kefu_core::{CannedId, StoreFault};

use super::ensure;

/// Canned replies by id.
#[derive(Default)]
pub(crate) struct CannedTable(BTreeMap<CannedId, CannedReply>);

impl CannedTable {
    /// Everything on these shelves, by id.
    pub(crate) fn on(&self, shelves: &[Shelf]) -> Vec<CannedReply> {
        self.0.values().filter(|reply| shelves.contains(&reply.shelf)).cloned().collect()
    }

    pub(crate) fn check(&self, reply: &CannedReply) -> Result<(), StoreFault> {
        let moved = self.0.get(&reply.id).is_some_and(|before| before.shelf != reply.shelf);
        ensure(!moved, "a canned reply changes its shelf")?;
        let same = |other: &CannedReply| {
            other.id != reply.id && other.shelf == reply.shelf && other.shortcut == reply.shortcut
        };
        ensure(!self.0.values().any(same), "a shortcut is used twice")
    }

    pub(crate) fn put(&mut self, reply: CannedReply) {
        self.0.insert(reply.id, reply);
    }

    pub(crate) fn remove(&mut self, id: CannedId) {
        self.0.remove(&id);
    }
}
