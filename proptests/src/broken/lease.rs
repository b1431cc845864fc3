//! Leases that live too short, too long, or by the wrong clock (2.9, P1, L2).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{Clock, ManualClock, NodeName, Person, StoreFault, Timestamp};
use kefu_memory::MemoryPresence;
use kefu_presence::{Lease, PresenceStore};
use tokio::sync::Barrier;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseFlaw {
    /// A sign of life does nothing: the time counts from the connect.
    NotRenewed,
    /// A lease that ran out stays away, whatever the connection says.
    NotRecreated,
    /// Half the time.
    Halved,
    /// It never runs out.
    Endless,
    /// Closing one connection takes the leases of all of that person.
    AllReleased,
    /// Counting and adding are two steps: two at once count the same.
    CountedBefore,
}

/// Leases with that flaw.
#[must_use]
pub fn lease(inner: Arc<dyn PresenceStore>, flaw: LeaseFlaw) -> Arc<dyn PresenceStore> {
    Arc::new(Broken { inner, flaw, seen: Mutex::default(), meeting: Barrier::new(2) })
}

/// Leases that run out by the wall clock, which steps.
#[must_use]
pub fn lease_by_wall_clock(clock: &Arc<ManualClock>) -> Arc<dyn PresenceStore> {
    Arc::new(MemoryPresence::new(Arc::new(WallClock(Arc::clone(clock)))))
}

/// A clock whose deadlines follow the wall.
#[derive(Debug)]
struct WallClock(Arc<ManualClock>);

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now().0).unwrap_or(0))
    }
}

struct Broken {
    inner: Arc<dyn PresenceStore>,
    flaw: LeaseFlaw,
    /// Leases ever taken.
    seen: Mutex<BTreeSet<Lease>>,
    meeting: Barrier,
}

impl Broken {
    fn ttl(&self, ttl: Duration) -> Duration {
        match self.flaw {
            LeaseFlaw::Halved => ttl / 2,
            LeaseFlaw::Endless => Duration::from_secs(u64::from(u32::MAX)),
            _ => ttl,
        }
    }
}

#[async_trait]
impl PresenceStore for Broken {
    async fn acquire(
        &self,
        person: &Person,
        lease: &Lease,
        ttl: Duration,
        limit: usize,
    ) -> Result<Option<usize>, StoreFault> {
        self.seen.lock().expect("whole").insert(lease.clone());
        if self.flaw != LeaseFlaw::CountedBefore {
            return self.inner.acquire(person, lease, self.ttl(ttl), limit).await;
        }
        let others = self.inner.count(person).await?;
        self.meeting.wait().await;
        if others >= limit {
            return Ok(None);
        }
        self.inner.renew(person, lease, ttl).await?;
        Ok(Some(others + 1))
    }

    async fn renew(&self, person: &Person, lease: &Lease, ttl: Duration) -> Result<(), StoreFault> {
        match self.flaw {
            LeaseFlaw::NotRenewed => Ok(()),
            LeaseFlaw::NotRecreated if self.inner.count(person).await? == 0 => Ok(()),
            _ => self.inner.renew(person, lease, self.ttl(ttl)).await,
        }
    }

    async fn release(&self, person: &Person, lease: &Lease) -> Result<usize, StoreFault> {
        if self.flaw == LeaseFlaw::AllReleased {
            let all = self.seen.lock().expect("whole").clone();
            for lease in &all {
                self.inner.release(person, lease).await?;
            }
        }
        self.inner.release(person, lease).await
    }

    async fn count(&self, person: &Person) -> Result<usize, StoreFault> {
        self.inner.count(person).await
    }

    async fn list_nodes(&self, people: &[Person]) -> Result<Vec<BTreeSet<NodeName>>, StoreFault> {
        self.inner.list_nodes(people).await
    }

    async fn age(&self) -> Result<Duration, StoreFault> {
        self.inner.age().await
    }
}
