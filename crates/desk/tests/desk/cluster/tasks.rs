//! Several drainers: each task with one of them, and with another when that one stops.

use std::collections::BTreeSet;

use kefu_core::NodeName;
use kefu_desk::Task;
use kefu_session::decide_open;
use kefu_testkit::build::{admin, user};

use super::{House, Node, named};
use crate::common::pass;

const QUICK: [Task; 4] = [Task::DrainSweep, Task::Liveness, Task::Relay, Task::Reconcile];

fn holders(house: &House) -> Vec<BTreeSet<NodeName>> {
    let held = house.tasks.holders();
    let of = |task: &Task| {
        held.iter().filter(|(held, _)| held == task).map(|(_, node)| node.clone()).collect()
    };
    QUICK.iter().map(of).collect()
}

/// A visitor's session that no event announced: only a sweep finds it.
async fn opened_unheard(node: &Node, id: &str) -> kefu_core::SessionId {
    let (info, context) = (user(id, 0), node.scene.context());
    let opened = node
        .scene
        .stores
        .sessions
        .open(
            &info.user_id,
            &|open, ids| decide_open(open, &info, "web", 0, &context, ids),
            node.scene.ids.as_ref(),
        )
        .await;
    opened.expect("opened").session.id
}

#[tokio::test(start_paused = true)]
async fn each_task_is_with_one_drainer_and_goes_over_when_that_one_stops() {
    let house = House::build();
    let a = house.node("a").await;
    a.scene.agent("a1", 10, 5).await;
    let (d, e) = (house.drainer("d").await, house.drainer("e").await);
    pass(30.0).await;
    for of_task in holders(&house) {
        assert_eq!(of_task.len(), 1, "one at a time");
    }
    let session = opened_unheard(&a, "u1").await;
    pass(1.1).await;
    assert!(a.scene.session(session).await.is_owned_by(&admin("a1")), "Z3");

    d.stop.cancel();
    pass(6.0).await;
    holders(&house);
    let session = opened_unheard(&a, "u2").await;
    pass(1.1).await;
    assert!(a.scene.session(session).await.is_owned_by(&admin("a1")), "Z3: the other goes on");
    let only: BTreeSet<_> = [named("e")].into();
    assert_eq!(holders(&house)[..3], [only.clone(), only.clone(), only], "the other has them all");
    assert_eq!(e.node, named("e"));
}

#[tokio::test(start_paused = true)]
async fn a_drainer_that_stops_gives_its_tasks_up_at_once() {
    let house = House::build();
    let a = house.node("a").await;
    a.scene.agent("a1", 10, 5).await;
    let (d, _e) = (house.drainer("d").await, house.drainer("e").await);
    pass(3.5).await;
    d.stop.cancel();
    d.desk.leave_tasks().await;
    let session = opened_unheard(&a, "u1").await;
    pass(1.1).await;
    assert!(
        a.scene.session(session).await.is_owned_by(&admin("a1")),
        "Z3: nobody waits for a lease"
    );
}
