//! The assignment lock of this process (Z4).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::{AssignLock, LockToken};
use kefu_core::{Clock, StoreFault, UserId};

/// Locks in memory, expiring by monotonic time. Holds nothing but locks that live, and expired ones
/// until the next call.
///
/// Tokens are numbered, not random: nobody outside this process can show one.
pub struct MemoryAssignLock {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl MemoryAssignLock {
    /// No locks yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> (MutexGuard<'_, State>, Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        state.expire(now);
        (state, now)
    }
}

#[async_trait]
impl AssignLock for MemoryAssignLock {
    async fn try_acquire(
        &self,
        user: &UserId,
        ttl: Duration,
    ) -> Result<Option<LockToken>, StoreFault> {
        let (mut state, now) = self.state();
        if state.held.contains_key(user) {
            return Ok(None);
        }
        Ok(Some(state.take(user, now.saturating_add(ttl))))
    }

    async fn release(&self, user: &UserId, token: LockToken) -> Result<(), StoreFault> {
        let (mut state, _) = self.state();
        if let Some(key) = state.held.get(user).copied().filter(|key| key.1 == token.0) {
            state.held.remove(user);
            state.expiry.remove(&key);
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryAssignLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryAssignLock").finish_non_exhaustive()
    }
}

/// Deadline and token of a lock.
type LockKey = (Duration, u64);

#[derive(Default)]
struct State {
    held: HashMap<UserId, LockKey>,
    expiry: BTreeMap<LockKey, UserId>,
    last_token: u64,
}

impl State {
    fn take(&mut self, user: &UserId, deadline: Duration) -> LockToken {
        self.last_token += 1;
        let key = (deadline, self.last_token);
        self.held.insert(user.clone(), key);
        self.expiry.insert(key, user.clone());
        LockToken(self.last_token)
    }

    fn expire(&mut self, now: Duration) {
        while let Some(entry) = self.expiry.first_entry().filter(|entry| entry.key().0 <= now) {
            let user = entry.remove();
            self.held.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests {
    use kefu_core::ManualClock;

    use super::*;

    #[tokio::test]
    async fn a_lock_that_died_is_gone_and_its_token_opens_nothing() {
        let clock = Arc::new(ManualClock::default());
        let lock = MemoryAssignLock::new(Arc::<ManualClock>::clone(&clock));
        let user = UserId::new("u1").expect("valid");
        let ttl = Duration::from_secs(3);
        let first = lock.try_acquire(&user, ttl).await.expect("memory").expect("free");
        assert_eq!(lock.try_acquire(&user, ttl).await, Ok(None));

        clock.advance(ttl);
        assert!(lock.try_acquire(&user, ttl).await.expect("memory").is_some());
        lock.release(&user, first).await.expect("memory");
        assert_eq!(lock.try_acquire(&user, ttl).await, Ok(None), "compare and delete");

        clock.advance(ttl);
        let (state, _) = lock.state();
        assert!(state.held.is_empty() && state.expiry.is_empty());
    }
}
