//! Snowflake ids (CC-07, T3): 41 bit milliseconds, 10 bit worker, 12 bit sequence.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering};

use crate::clock::{Clock, Timestamp};
use crate::id::WorkerId;

/// The custom epoch: 2026-01-01 00:00:00 UTC in Unix milliseconds.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

const SEQUENCE_BITS: u32 = 12;
const TIME_SHIFT: u32 = SEQUENCE_BITS + 10;
const SEQUENCE_MASK: i64 = (1 << SEQUENCE_BITS) - 1;

/// Where ids come from. Passed into every transaction, since the floor is known only inside its lock.
pub trait IdSource: Send + Sync + fmt::Debug {
    /// A fresh id above `floor` and above every id this source gave before.
    ///
    /// Never waits: when the clock stands or steps back the source borrows ahead. Burnt ids are harmless.
    fn next_after(&self, floor: i64) -> i64;
}

/// The millisecond inside a snowflake: the `create_time` of what carries it (T1).
#[must_use]
pub const fn timestamp_of(id: i64) -> Timestamp {
    Timestamp((id >> TIME_SHIFT) + EPOCH_MS)
}

/// Not above any id of `time` or later: where a reading by time begins.
#[must_use]
pub const fn floor_of(time: Timestamp) -> i64 {
    let elapsed = time.0 - EPOCH_MS;
    if elapsed <= 0 { 0 } else { (elapsed << TIME_SHIFT) - 1 }
}

/// The generator of one process: guarded against clock steps, lock-free.
///
/// Uniqueness across processes rests on the leased worker id; within one on the single instance,
/// so `app` builds exactly one.
#[derive(Debug)]
pub struct SnowflakeIds {
    clock: Arc<dyn Clock>,
    worker: AtomicU16,
    last: AtomicI64,
}

impl SnowflakeIds {
    /// A generator that starts above `highest_stored` (0 for an empty store), as T3 asks after a restart.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, worker: WorkerId, highest_stored: i64) -> Self {
        let (worker, last) = (AtomicU16::new(worker.get()), AtomicI64::new(highest_stored));
        Self { clock, worker, last }
    }

    /// Goes on under another worker id, above the highest id stored by now: the first one was lost
    /// (T3). A call that runs meanwhile may still give an id of the lost one, so whoever stores ids
    /// checks the lease under which they were made.
    pub fn reassign(&self, worker: WorkerId, highest_stored: i64) {
        self.last.fetch_max(highest_stored, Ordering::Relaxed);
        self.worker.store(worker.get(), Ordering::Relaxed);
    }

    /// The lowest id of this worker that is above `floor`: the next sequence number, or the
    /// first of the next millisecond.
    fn above(&self, floor: i64) -> i64 {
        let worker = i64::from(self.worker.load(Ordering::Relaxed)) << SEQUENCE_BITS;
        let millisecond = floor >> TIME_SHIFT;
        let first = (millisecond << TIME_SHIFT) | worker;
        if floor < first {
            return first;
        }
        if floor < first + SEQUENCE_MASK {
            floor + 1
        } else {
            ((millisecond + 1) << TIME_SHIFT) | worker
        }
    }
}

impl IdSource for SnowflakeIds {
    fn next_after(&self, floor: i64) -> i64 {
        let elapsed = (self.clock.now().0 - EPOCH_MS).max(0);
        let by_clock = (elapsed << TIME_SHIFT) - 1;
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let id = self.above(last.max(floor).max(by_clock));
            match self.last.compare_exchange_weak(last, id, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return id,
                Err(seen) => last = seen,
            }
        }
    }
}

/// Ids in the order 1, 2, 3 … above the floor, for tests that want readable numbers.
#[derive(Debug, Default)]
pub struct ManualIds {
    last: AtomicI64,
}

impl IdSource for ManualIds {
    fn next_after(&self, floor: i64) -> i64 {
        let step = |last: i64| Some(last.max(floor) + 1);
        let before = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
            .unwrap_or_else(|last| last);
        before.max(floor) + 1
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn source(highest: i64) -> (Arc<ManualClock>, SnowflakeIds) {
        let clock = Arc::new(ManualClock::default());
        let worker = WorkerId::new(7).expect("in range");
        (Arc::clone(&clock), SnowflakeIds::new(clock, worker, highest))
    }

    use crate::clock::ManualClock;

    #[test]
    fn ids_grow_while_the_clock_stands_and_past_a_full_millisecond() {
        let (_, ids) = source(0);
        let mut last = 0;
        for _ in 0..10_000 {
            let id = ids.next_after(0);
            assert!(id > last);
            assert_eq!((id >> SEQUENCE_BITS) & 1023, 7);
            last = id;
        }
    }

    #[test]
    fn a_clock_step_back_never_lowers_an_id() {
        let (clock, ids) = source(0);
        let before = ids.next_after(0);
        clock.step_wall(-300_000);
        assert!(ids.next_after(0) > before);
        clock.advance(Duration::from_secs(600));
        assert_eq!(timestamp_of(ids.next_after(0)), clock.now());
    }

    #[test]
    fn the_floor_of_another_worker_is_respected() {
        let (clock, ids) = source(0);
        let foreign = ((clock.now().0 - EPOCH_MS + 50) << TIME_SHIFT) | (900 << SEQUENCE_BITS) | 5;
        let id = ids.next_after(foreign);
        assert!(id > foreign);
        assert!(timestamp_of(id) >= timestamp_of(foreign));
    }

    #[test]
    fn a_restart_begins_above_what_is_stored() {
        let (clock, _) = source(0);
        let stored = (clock.now().0 - EPOCH_MS + 5_000) << TIME_SHIFT;
        let (_, ids) = source(stored);
        assert!(ids.next_after(0) > stored);
    }

    #[test]
    fn another_worker_goes_on_above_both() {
        let (clock, ids) = source(0);
        let before = ids.next_after(0);
        ids.reassign(WorkerId::new(9).expect("in range"), 0);
        let after = ids.next_after(0);
        assert!(after > before);
        assert_eq!((after >> SEQUENCE_BITS) & 1023, 9);
        let stored = (clock.now().0 - EPOCH_MS + 5_000) << TIME_SHIFT;
        ids.reassign(WorkerId::new(10).expect("in range"), stored);
        assert!(ids.next_after(0) > stored);
    }

    #[test]
    fn concurrent_callers_never_share_an_id() {
        let (_, ids) = source(0);
        let all: Vec<i64> = std::thread::scope(|scope| {
            let tasks: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..2_000).map(|_| ids.next_after(0)).collect::<Vec<_>>()))
                .collect();
            tasks.into_iter().flat_map(|t| t.join().expect("no panic")).collect()
        });
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
    }
}
