//! The events dealt with lately: what two ways may bring is handled once (N2).

use std::collections::{HashSet, VecDeque};

use kefu_core::EventId;

/// Events remembered. Covers far more than what can be handled between the first and the second way.
const REMEMBERED: usize = 16_384;

/// The last handled ids, oldest forgotten first.
#[derive(Debug, Default)]
pub struct Recent {
    known: HashSet<EventId>,
    order: VecDeque<EventId>,
}

impl Recent {
    /// Whether the event is among the last ones handled.
    #[must_use]
    pub fn contains(&self, id: EventId) -> bool {
        self.known.contains(&id)
    }

    /// Remembers an event; `false` when it was known.
    pub fn insert(&mut self, id: EventId) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}
