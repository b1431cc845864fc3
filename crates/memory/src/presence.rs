//! Leases of connections in this process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{Clock, NodeName, Person, StoreFault};
use kefu_presence::{Lease, PresenceStore};

/// Queue entries that one call looks at. A call adds at most one, so any number above one keeps the
/// queue from growing beyond the leases that live; more would only hold the mutex longer.
const SWEEP: usize = 4;

/// Leases in memory, expiring by monotonic time (P2).
///
/// Holds one slot and one queue entry per lease and nothing else: expired leases are removed by the
/// calls that come after. A heartbeat costs one look-up.
pub struct MemoryPresence {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl MemoryPresence {
    /// No leases yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { since: clock.monotonic(), ..State::default() };
        Self { clock, state: Mutex::new(state) }
    }

    /// Loses every lease at once, as a Redis that was emptied (P4).
    pub fn lose_all(&self) {
        let (mut state, now) = self.state();
        *state = State { since: now, ..State::default() };
    }

    fn state(&self) -> (MutexGuard<'_, State>, Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the mutex, so that calls see time in the order in which they take effect.
        let now = self.clock.monotonic();
        state.sweep(now);
        (state, now)
    }

    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let (state, _) = self.state();
        (state.people.values().map(Vec::len).sum(), state.expiry.len())
    }
}

#[async_trait]
impl PresenceStore for MemoryPresence {
    async fn acquire(
        &self,
        person: &Person,
        lease: &Lease,
        ttl: Duration,
        limit: usize,
    ) -> Result<Option<usize>, StoreFault> {
        let (mut state, now) = self.state();
        let others = || state.living(person, now).filter(|slot| slot.lease != *lease);
        if others().filter(|slot| slot.lease.node == lease.node).count() >= limit {
            return Ok(None);
        }
        let count = others().count() + 1;
        state.put(person, lease, now.saturating_add(ttl));
        Ok(Some(count))
    }

    async fn renew(&self, person: &Person, lease: &Lease, ttl: Duration) -> Result<(), StoreFault> {
        let (mut state, now) = self.state();
        state.put(person, lease, now.saturating_add(ttl));
        Ok(())
    }

    async fn release(&self, person: &Person, lease: &Lease) -> Result<usize, StoreFault> {
        let (mut state, now) = self.state();
        state.remove(person, lease);
        Ok(state.living(person, now).count())
    }

    async fn count(&self, person: &Person) -> Result<usize, StoreFault> {
        let (state, now) = self.state();
        Ok(state.living(person, now).count())
    }

    async fn list_nodes(&self, people: &[Person]) -> Result<Vec<BTreeSet<NodeName>>, StoreFault> {
        let (state, now) = self.state();
        let nodes =
            |person| state.living(person, now).map(|slot| slot.lease.node.clone()).collect();
        Ok(people.iter().map(nodes).collect())
    }

    async fn age(&self) -> Result<Duration, StoreFault> {
        let (state, now) = self.state();
        Ok(now.saturating_sub(state.since))
    }
}

impl fmt::Debug for MemoryPresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPresence").finish_non_exhaustive()
    }
}

/// Where a lease stands in the queue; the number keeps equal times apart.
type QueueKey = (Duration, u64);

struct Slot {
    lease: Lease,
    deadline: Duration,
    queued: QueueKey,
}

#[derive(Default)]
struct State {
    people: HashMap<Person, Vec<Slot>>,
    /// Each lease once, at a time not later than its deadline: renewing moves only the deadline, and
    /// the entry follows when its own time comes.
    expiry: BTreeMap<QueueKey, (Person, Lease)>,
    serial: u64,
    /// Since when nothing was lost.
    since: Duration,
}

impl State {
    fn living(&self, person: &Person, now: Duration) -> impl Iterator<Item = &Slot> {
        let slots = self.people.get(person).map(Vec::as_slice).unwrap_or_default();
        slots.iter().filter(move |slot| slot.deadline > now)
    }

    fn put(&mut self, person: &Person, lease: &Lease, deadline: Duration) {
        if let Some(slot) = self.slot(person, lease) {
            slot.deadline = deadline;
            return;
        }
        let queued = self.enqueue(person.clone(), lease.clone(), deadline);
        let slot = Slot { lease: lease.clone(), deadline, queued };
        self.people.entry(person.clone()).or_default().push(slot);
    }

    fn remove(&mut self, person: &Person, lease: &Lease) {
        let Some(slots) = self.people.get_mut(person) else { return };
        let Some(index) = slots.iter().position(|slot| slot.lease == *lease) else { return };
        let slot = slots.swap_remove(index);
        if slots.is_empty() {
            self.people.remove(person);
        }
        self.expiry.remove(&slot.queued);
    }

    fn sweep(&mut self, now: Duration) {
        for _ in 0..SWEEP {
            let due = self.expiry.first_entry().filter(|entry| entry.key().0 <= now);
            let Some(entry) = due else { return };
            let (person, lease) = entry.remove();
            self.settle(&person, &lease, now);
        }
    }

    /// Queues a lease anew if it was renewed meanwhile, else drops it.
    fn settle(&mut self, person: &Person, lease: &Lease, now: Duration) {
        match self.slot(person, lease).map(|slot| slot.deadline) {
            Some(deadline) if deadline > now => {
                let queued = self.enqueue(person.clone(), lease.clone(), deadline);
                if let Some(slot) = self.slot(person, lease) {
                    slot.queued = queued;
                }
            }
            Some(_) | None => self.remove(person, lease),
        }
    }

    fn slot(&mut self, person: &Person, lease: &Lease) -> Option<&mut Slot> {
        self.people.get_mut(person)?.iter_mut().find(|slot| slot.lease == *lease)
    }

    fn enqueue(&mut self, person: Person, lease: Lease, at: Duration) -> QueueKey {
        self.serial += 1;
        let key = (at, self.serial);
        self.expiry.insert(key, (person, lease));
        key
    }
}

#[cfg(test)]
mod tests {
    use kefu_core::{ConnId, ManualClock, UserId};

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn store() -> (Arc<ManualClock>, MemoryPresence) {
        let clock = Arc::new(ManualClock::default());
        (Arc::clone(&clock), MemoryPresence::new(clock))
    }

    fn user(n: u64) -> Person {
        Person::User(UserId::new(format!("u{n}")).expect("valid"))
    }

    fn lease(n: u64) -> Lease {
        Lease { node: NodeName::new("n1").expect("valid"), conn: ConnId(n) }
    }

    #[tokio::test]
    async fn expired_leases_are_removed_by_later_calls() {
        let (clock, store) = store();
        for n in 0..100 {
            store.acquire(&user(n), &lease(n), TTL, 10).await.expect("memory");
        }
        clock.advance(TTL);
        for _ in 0..25 {
            store.renew(&user(0), &lease(0), TTL).await.expect("memory");
        }
        assert_eq!(store.held(), (1, 1));
    }

    #[tokio::test]
    async fn heartbeats_and_reconnects_leave_one_entry_a_lease() {
        let (clock, store) = store();
        for round in 0..1_000 {
            store.renew(&user(1), &lease(1), TTL).await.expect("memory");
            store.acquire(&user(2), &lease(round), TTL, 10).await.expect("memory");
            store.release(&user(2), &lease(round)).await.expect("memory");
            clock.advance(Duration::from_secs(1));
            assert_eq!(store.held(), (1, 1));
        }
        assert_eq!(store.count(&user(1)).await, Ok(1));
    }
}
