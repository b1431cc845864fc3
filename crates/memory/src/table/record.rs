//! `cg_chat_assignment`.

use std::collections::{BTreeMap, HashMap, HashSet};

use kefu_assignment::DecisionRecord;
use kefu_core::{AssignmentId, SessionId, StoreFault};

use super::{ensure, ensure_unique};

/// Decision records per session.
#[derive(Default)]
pub(crate) struct RecordTable {
    ids: HashSet<AssignmentId>,
    by_session: HashMap<SessionId, BTreeMap<AssignmentId, DecisionRecord>>,
}

impl RecordTable {
    /// A session's records, by id.
    pub(crate) fn of_session(
        &self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = &DecisionRecord> {
        self.by_session.get(&session).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn check(&self, fresh: &[DecisionRecord]) -> Result<(), StoreFault> {
        ensure_unique(fresh.iter().map(|record| record.id), "a record id is used twice")?;
        let stored = |record: &DecisionRecord| self.ids.contains(&record.id);
        ensure(!fresh.iter().any(stored), "a record id is used twice")
    }

    pub(crate) fn insert(&mut self, record: DecisionRecord) {
        self.ids.insert(record.id);
        self.by_session.entry(record.session_id).or_default().insert(record.id, record);
    }
}
