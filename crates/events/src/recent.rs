//! What was dealt with lately: what two ways may bring is handled once (N2).

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use kefu_core::EventId;

/// Ids remembered. Covers far more than what can be handled between the first and the second way.
const REMEMBERED: usize = 16_384;

/// The last handled ids, oldest forgotten first.
#[derive(Debug)]
pub struct Recent<T = EventId> {
    known: HashSet<T>,
    order: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), order: VecDeque::new() }
    }
}

impl<T: Copy + Eq + Hash> Recent<T> {
    /// Whether the id is among the last ones handled.
    #[must_use]
    pub fn contains(&self, id: T) -> bool {
        self.known.contains(&id)
    }

    /// Remembers an id; `false` when it was known.
    pub fn insert(&mut self, id: T) -> bool {
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
