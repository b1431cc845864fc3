//! Z2: one drain at a time per line, also between processes.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use kefu_assignment::{AssignmentStore, Scope, Snapshot, Verdict};
use kefu_core::IdSource;
use kefu_testkit::World;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::{Fixture, connect};

const PATIENCE: Duration = Duration::from_secs(20);

async fn turn(world: &World) -> Option<Verdict> {
    let decide = |_: &Snapshot, _: &dyn IdSource| Verdict::Stale;
    let ids = world.ids.as_ref();
    world.stores.assignments.transact_in_turn(&Scope::default(), &decide, ids).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_drain_finds_the_turn_taken_and_free_again() {
    let fixture = Fixture::start().await;
    let other = World::new(connect(&fixture.database).await.stores());
    let inside = Arc::new(Notify::new());
    let (leave, left) = mpsc::channel::<()>();
    let first = {
        let (world, inside) = (fixture.world.clone(), Arc::clone(&inside));
        let left = Mutex::new(left);
        TaskTracker::new().spawn(async move {
            let decide = |_: &Snapshot, _: &dyn IdSource| {
                inside.notify_one();
                tokio::task::block_in_place(|| {
                    left.lock().unwrap().recv_timeout(PATIENCE).unwrap();
                });
                Verdict::Stale
            };
            let store: &dyn AssignmentStore = world.stores.assignments.as_ref();
            store.transact_in_turn(&Scope::default(), &decide, world.ids.as_ref()).await
        })
    };
    inside.notified().await;
    assert_eq!(turn(&other).await, None, "taken");
    leave.send(()).unwrap();
    assert_eq!(first.await.unwrap().unwrap(), Some(Verdict::Stale));
    // The lock goes with the transaction, whose rollback is on its way.
    while turn(&other).await.is_none() {}
}
