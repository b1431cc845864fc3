//! The handle to a world of tables behind one mutex.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kefu_core::Clock;
use kefu_desk::{Coordination, Stores};

use crate::MemoryCoordination;
use crate::table::Tables;

/// Every port of one installation, held in this process. Clones share the same content.
///
/// One mutex around all tables makes each port call a serial transaction, which is what the ports'
/// contracts ask of a database. A verdict that breaks a constraint of the tables is refused with
/// [`StoreFault::Internal`](kefu_core::StoreFault::Internal) before anything is written.
#[derive(Clone)]
pub struct MemoryWorld {
    tables: Arc<Mutex<Tables>>,
    coordination: MemoryCoordination,
}

impl MemoryWorld {
    /// An empty world. `clock` decides when leases and locks expire; the tables need no time.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { tables: Arc::default(), coordination: MemoryCoordination::new(clock) }
    }

    /// The ports to what must survive. They outlive a restart of everything built on them, as a
    /// database would.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let world = Arc::new(self.clone());
        Stores {
            sessions: world.clone(),
            agents: world.clone(),
            assignments: world.clone(),
            line: world.clone(),
            messages: world.clone(),
            uploads: world.clone(),
            notes: world.clone(),
            canned: world.clone(),
            search: world.clone(),
            outbox: world,
        }
    }

    /// The ports to what may be lost.
    #[must_use]
    pub fn coordination(&self) -> Coordination {
        self.coordination.ports()
    }

    /// Begins a transaction, which lasts as long as the guard.
    ///
    /// Nothing here ever waits, so without spending the task's budget a loop over ports would keep its
    /// worker thread for itself.
    ///
    /// Rules run under the mutex and could panic there, but what they decide is checked and written
    /// only afterwards, so that a poisoned mutex still guards whole tables.
    pub(crate) async fn begin(&self) -> MutexGuard<'_, Tables> {
        tokio::task::coop::consume_budget().await;
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWorld").finish_non_exhaustive()
    }
}
