//! `AssignLock`, in virtual time (Z4, CC-02, CC-04).

use std::sync::Arc;
use std::time::Duration;

use kefu_assignment::LockToken;
use kefu_core::UserId;

use crate::{CoordinationHarness, race};

const TTL: Duration = Duration::from_secs(3);

/// At most one live token a user; other users are not concerned.
pub async fn a_held_lock_is_refused<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    assert!(lock.try_acquire(&user("u1"), TTL).await.unwrap().is_some());
    assert_eq!(lock.try_acquire(&user("u1"), TTL).await.unwrap(), None);
    assert!(lock.try_acquire(&user("u2"), TTL).await.unwrap().is_some());
}

/// Given back, it can be taken again, under another token.
pub async fn a_released_lock_is_free<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    let first = lock.try_acquire(&user("u1"), TTL).await.unwrap().unwrap();
    lock.release(&user("u1"), first).await.unwrap();
    let second = lock.try_acquire(&user("u1"), TTL).await.unwrap().unwrap();
    assert_ne!(first, second);
}

/// It dies by itself. A second on either side: some stores go by a clock that also runs by itself.
pub async fn a_lock_dies_after_its_ttl<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    lock.try_acquire(&user("u1"), TTL).await.unwrap().unwrap();
    harness.advance(Duration::from_secs(2)).await;
    assert_eq!(lock.try_acquire(&user("u1"), TTL).await.unwrap(), None);
    harness.advance(Duration::from_secs(2)).await;
    assert!(lock.try_acquire(&user("u1"), TTL).await.unwrap().is_some());
}

/// Compare and delete: only the present token releases; a late one harms nobody.
pub async fn only_the_present_token_releases<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    let late = lock.try_acquire(&user("u1"), TTL).await.unwrap().unwrap();
    harness.advance(Duration::from_secs(4)).await;
    let present = lock.try_acquire(&user("u1"), TTL).await.unwrap().unwrap();
    lock.release(&user("u1"), late).await.unwrap();
    assert_eq!(lock.try_acquire(&user("u1"), TTL).await.unwrap(), None);
    lock.release(&user("u1"), LockToken(present.0.wrapping_add(1))).await.unwrap();
    lock.release(&user("u2"), present).await.unwrap();
    assert_eq!(lock.try_acquire(&user("u1"), TTL).await.unwrap(), None);
    lock.release(&user("u1"), present).await.unwrap();
    assert!(lock.try_acquire(&user("u1"), TTL).await.unwrap().is_some());
}

/// Fifty at once: one gets it.
pub async fn one_of_many_takes_the_lock<H: CoordinationHarness>() {
    let harness = H::start().await;
    let lock = harness.coordination().assign_lock;
    let answers = race(50, |_| {
        let lock = Arc::clone(&lock);
        async move { lock.try_acquire(&user("u1"), TTL).await.unwrap() }
    })
    .await;
    assert_eq!(answers.into_iter().flatten().count(), 1);
}

fn user(id: &str) -> UserId {
    UserId::new(id).unwrap()
}
