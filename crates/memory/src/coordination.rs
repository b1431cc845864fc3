//! Leases and locks of one process: what the embedded profile runs on.

use std::sync::Arc;

use kefu_core::Clock;
use kefu_desk::Coordination;

use crate::{MemoryAssignLock, MemoryPresence};

/// Presence and the assignment lock of a process that is the only node. Clones share their content.
///
/// Each stands behind a mutex of its own, so that heartbeats never wait for a transaction.
#[derive(Debug, Clone)]
pub struct MemoryCoordination {
    presence: Arc<MemoryPresence>,
    assign_lock: Arc<MemoryAssignLock>,
}

impl MemoryCoordination {
    /// No leases, no locks; both expire by the monotonic time of `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            presence: Arc::new(MemoryPresence::new(Arc::clone(&clock))),
            assign_lock: Arc::new(MemoryAssignLock::new(clock)),
        }
    }

    /// Loses every lease at once, as a Redis that was emptied (P4).
    pub fn lose_leases(&self) {
        self.presence.lose_all();
    }

    /// The ports, as a desk takes them.
    #[must_use]
    pub fn ports(&self) -> Coordination {
        Coordination { presence: self.presence.clone(), assign_lock: self.assign_lock.clone() }
    }
}
