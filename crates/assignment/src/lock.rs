//! `cs:lock:assign:{userId}` (Z4, CC-02, CC-04): cuts contention, never decides correctness.

use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{StoreFault, UserId};

/// The holder's secret: only who shows it may release the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockToken(pub u64);

/// A lock with a life of its own, per user.
///
/// # Contract
/// - At most one live token per user; it dies by itself after `ttl`.
/// - `release` removes the lock only if `token` is the present one (compare and delete).
///
/// # Errors
/// [`StoreFault::Unavailable`]: the caller goes on without the lock.
#[async_trait]
pub trait AssignLock: Send + Sync {
    /// Takes the lock, or `None` while somebody else holds it.
    async fn try_acquire(
        &self,
        user: &UserId,
        ttl: Duration,
    ) -> Result<Option<LockToken>, StoreFault>;

    /// Gives it back.
    async fn release(&self, user: &UserId, token: LockToken) -> Result<(), StoreFault>;
}
