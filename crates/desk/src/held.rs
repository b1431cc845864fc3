//! Which tasks this process has, for whoever watches it: a lease ends by time, told or not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::Task;

/// Until when this process has each of its tasks.
#[derive(Debug, Default)]
pub(crate) struct HeldTasks {
    until: Mutex<BTreeMap<Task, Instant>>,
}

impl HeldTasks {
    /// The lease was asked for at `asked` and lives for `ttl`; or another process has it.
    pub(crate) fn note(&self, task: Task, asked: Instant, ttl: Option<Duration>) {
        let mut until = self.until();
        match ttl {
            Some(ttl) => drop(until.insert(task, asked + ttl)),
            None => drop(until.remove(&task)),
        }
        drop(until);
        self.show();
    }

    /// All were given back.
    pub(crate) fn forget_all(&self) {
        self.until().clear();
        self.show();
    }

    /// Sets the gauges to what holds now.
    pub(crate) fn show(&self) {
        let now = Instant::now();
        for task in Task::ALL {
            let held = f64::from(u8::from(self.holds(task, now)));
            metrics::gauge!("kefu_task_held", "task" => task.as_str()).set(held);
        }
    }

    fn holds(&self, task: Task, now: Instant) -> bool {
        self.until().get(&task).is_some_and(|until| *until > now)
    }

    fn until(&self) -> MutexGuard<'_, BTreeMap<Task, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(5);

    #[test]
    fn a_task_is_held_until_its_lease_ends_or_is_given_back() {
        let (held, now) = (HeldTasks::default(), Instant::now());
        let holds = |task, seconds| held.holds(task, now + Duration::from_secs(seconds));
        held.note(Task::Relay, now, Some(TTL));
        held.note(Task::Liveness, now, Some(TTL));
        assert!(holds(Task::Relay, 4) && holds(Task::Liveness, 4) && !holds(Task::Reconcile, 4));
        assert!(!holds(Task::Relay, 5), "nobody said so, its time is over");
        held.note(Task::Liveness, now + TTL, None);
        assert!(!holds(Task::Liveness, 0), "another process has it");
        held.note(Task::Relay, now + TTL, Some(TTL));
        assert!(holds(Task::Relay, 9));
        held.forget_all();
        assert!(!holds(Task::Relay, 0));
    }
}
