//! `TaskLeases`: one process at a time, and nobody for ever.

use std::time::Duration;

use kefu_core::NodeName;
use kefu_desk::Task;

use crate::{TaskLeasesHarness, race};

const TTL: Duration = Duration::from_secs(5);

/// While one holds it, others do not; other tasks are other leases.
pub async fn a_held_task_is_refused<H: TaskLeasesHarness>() {
    let harness = H::start().await;
    let tasks = harness.tasks();
    let first = tasks.hold(Task::Relay, &node("a"), TTL).await.unwrap();
    assert!(first.is_some());
    assert_eq!(tasks.hold(Task::Relay, &node("b"), TTL).await.unwrap(), None);
    assert!(tasks.hold(Task::Liveness, &node("b"), TTL).await.unwrap().is_some());
    assert_eq!(tasks.hold(Task::Relay, &node("a"), TTL).await.unwrap(), first, "one's own");
}

/// A lease that is not extended dies; the next holder's epoch is larger.
pub async fn an_expired_task_is_taken_over<H: TaskLeasesHarness>() {
    let harness = H::start().await;
    let tasks = harness.tasks();
    let first = tasks.hold(Task::Relay, &node("a"), TTL).await.unwrap();
    harness.advance(TTL - Duration::from_secs(1)).await;
    assert_eq!(tasks.hold(Task::Relay, &node("a"), TTL).await.unwrap(), first);
    harness.advance(TTL - Duration::from_secs(1)).await;
    assert_eq!(tasks.hold(Task::Relay, &node("b"), TTL).await.unwrap(), None, "it was extended");
    harness.advance(Duration::from_secs(2)).await;
    let second = tasks.hold(Task::Relay, &node("b"), TTL).await.unwrap();
    assert!(second > first, "{second:?} follows {first:?}");
    assert_eq!(tasks.hold(Task::Relay, &node("a"), TTL).await.unwrap(), None);
}

/// Given up, it is free at once; nobody gives up what is not theirs.
pub async fn a_released_task_is_free<H: TaskLeasesHarness>() {
    let harness = H::start().await;
    let tasks = harness.tasks();
    let first = tasks.hold(Task::Reconcile, &node("a"), TTL).await.unwrap();
    tasks.release(Task::Reconcile, &node("b")).await.unwrap();
    assert_eq!(tasks.hold(Task::Reconcile, &node("b"), TTL).await.unwrap(), None);
    tasks.release(Task::Reconcile, &node("a")).await.unwrap();
    let second = tasks.hold(Task::Reconcile, &node("b"), TTL).await.unwrap();
    assert!(second > first);
}

/// Of many at once one gets it.
pub async fn one_of_many_holds_a_task<H: TaskLeasesHarness>() {
    let harness = H::start().await;
    let held = race(20, |n| {
        let tasks = harness.tasks();
        async move { tasks.hold(Task::DrainSweep, &node(&format!("n{n}")), TTL).await.unwrap() }
    })
    .await;
    assert_eq!(held.iter().flatten().count(), 1);
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}
