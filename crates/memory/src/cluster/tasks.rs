//! Who does what for all, in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{Clock, NodeName, StoreFault};
use kefu_desk::{Task, TaskLeases};

/// Leases of tasks, expiring by monotonic time.
pub struct MemoryTaskLeases {
    clock: Arc<dyn Clock>,
    held: Mutex<BTreeMap<Task, Held>>,
}

struct Held {
    holder: NodeName,
    epoch: i64,
    until: Duration,
}

impl MemoryTaskLeases {
    /// Nobody holds anything.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, held: Mutex::default() }
    }
}

#[async_trait]
impl TaskLeases for MemoryTaskLeases {
    async fn hold(
        &self,
        task: Task,
        holder: &NodeName,
        ttl: Duration,
    ) -> Result<Option<i64>, StoreFault> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        let (epoch, until) = match held.get(&task) {
            Some(lease) if lease.holder == *holder => (lease.epoch, now + ttl),
            Some(lease) if lease.until > now => return Ok(None),
            Some(lease) => (lease.epoch + 1, now + ttl),
            None => (1, now + ttl),
        };
        held.insert(task, Held { holder: holder.clone(), epoch, until });
        Ok(Some(epoch))
    }

    async fn release(&self, task: Task, holder: &NodeName) -> Result<(), StoreFault> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lease) = held.get_mut(&task).filter(|lease| lease.holder == *holder) {
            // The row stays, so that the next holder's epoch is larger.
            lease.until = Duration::ZERO;
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryTaskLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTaskLeases").finish_non_exhaustive()
    }
}
