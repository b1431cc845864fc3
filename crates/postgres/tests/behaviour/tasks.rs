//! Who does what only one process should do.

use std::time::Duration;

use kefu_core::NodeName;
use kefu_desk::Task;
use kefu_testkit::race;

use crate::Fixture;

const LONG: Duration = Duration::from_secs(60);

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_held_by_one_until_it_is_released() {
    let tasks = Fixture::start().await.store.tasks();
    let hold = async |task, holder| tasks.hold(task, &node(holder), LONG).await.unwrap();
    assert_eq!(hold(Task::Relay, "a").await, Some(1));
    assert_eq!(hold(Task::Relay, "a").await, Some(1), "extended");
    assert_eq!(hold(Task::Relay, "b").await, None);
    assert_eq!(hold(Task::Liveness, "b").await, Some(1), "another task");
    tasks.release(Task::Relay, &node("b")).await.unwrap();
    assert_eq!(hold(Task::Relay, "b").await, None, "released by who had none");
    tasks.release(Task::Relay, &node("a")).await.unwrap();
    assert_eq!(hold(Task::Relay, "b").await, Some(2), "the epoch grows with the holder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_is_taken_by_one_of_many() {
    let fixture = Fixture::start().await;
    let tasks = fixture.store.tasks();
    tasks.hold(Task::DrainSweep, &node("gone"), LONG).await.unwrap();
    fixture.database.query("UPDATE cg_lease SET expires_at = 0");
    let epochs = race(10, |n| {
        let tasks = fixture.store.tasks();
        async move { tasks.hold(Task::DrainSweep, &node(&format!("n{n}")), LONG).await.unwrap() }
    })
    .await;
    let taken: Vec<_> = epochs.into_iter().flatten().collect();
    assert_eq!(taken, [2]);
}
