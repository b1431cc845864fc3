//! `AssignLock` (Z4).

use std::time::Duration;

use crate::CoordinationHarness;

/// At most one live token a user; other users are not concerned.
pub async fn a_held_lock_is_refused<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    let user = kefu_core::UserId::new("u1").unwrap();
    let ttl = Duration::from_secs(3);
    assert!(lock.try_acquire(&user, ttl).await.unwrap().is_some());
    assert_eq!(lock.try_acquire(&user, ttl).await.unwrap(), None);
}
