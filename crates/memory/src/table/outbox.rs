//! `cg_chat_outbox`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use kefu_core::{EventId, StoreFault, Timestamp};
use kefu_events::{Envelope, EventContext};

use super::{ensure, ensure_unique};

/// Committed events, until they are trimmed, and which of them are not dealt with yet.
#[derive(Default)]
pub(crate) struct OutboxTable {
    rows: BTreeMap<EventId, Envelope>,
    unconfirmed: BTreeSet<EventId>,
    confirmed: HashMap<EventId, Timestamp>,
    by_confirmation: BTreeSet<(Timestamp, EventId)>,
}

impl OutboxTable {
    /// Unconfirmed rows above `after`, by id.
    pub(crate) fn unconfirmed(&self, after: Option<EventId>) -> impl Iterator<Item = &Envelope> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = self.unconfirmed.range((from, Bound::Unbounded));
        ids.filter_map(|id| self.rows.get(id))
    }

    /// Rows with ids above `after`, by id.
    pub(crate) fn above(&self, after: i64) -> impl Iterator<Item = &Envelope> {
        self.rows.values().filter(move |envelope| envelope.id.get() > after)
    }

    pub(crate) fn check(&self, fresh: &[Envelope]) -> Result<(), StoreFault> {
        ensure_unique(fresh.iter().map(|envelope| envelope.id), "an event id is used twice")?;
        let stored = |envelope: &Envelope| self.rows.contains_key(&envelope.id);
        ensure(!fresh.iter().any(stored), "an event id is used twice")
    }

    /// Stores what a row of the table holds: attachments are for the process that committed.
    pub(crate) fn insert(&mut self, envelope: &Envelope) {
        let context = EventContext {
            now: envelope.time,
            source: envelope.source.clone(),
            trace_id: envelope.trace_id.clone(),
        };
        let event = envelope.event.clone();
        let row = Envelope::stored(envelope.id, envelope.schema_version, &context, event);
        self.unconfirmed.insert(row.id);
        self.rows.insert(row.id, row);
    }

    pub(crate) fn confirm(&mut self, id: EventId, now: Timestamp) {
        if self.unconfirmed.remove(&id) {
            self.confirmed.insert(id, now);
            self.by_confirmation.insert((now, id));
        }
    }

    /// Deletes the row that was confirmed first, if that was before `confirmed_before`.
    pub(crate) fn trim_one(&mut self, confirmed_before: Timestamp) -> bool {
        let first = self.by_confirmation.first().copied();
        let Some((time, id)) = first.filter(|(time, _)| *time < confirmed_before) else {
            return false;
        };
        self.by_confirmation.remove(&(time, id));
        self.confirmed.remove(&id);
        self.rows.remove(&id);
        true
    }
}
