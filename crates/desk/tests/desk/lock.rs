//! The lock of Z4 is held around opening and claiming, and never decides anything.

use std::sync::Arc;
use std::time::Duration;

use kefu_desk::Stores;
use kefu_testkit::build::{trace, user};
use kefu_testkit::{Gate, Slow};
use tokio::task::yield_now;

use crate::common::{NOWHERE, Scene, agent};

const LIFE: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn opening_holds_the_lock_of_its_user_and_gives_it_back() {
    let gate = Gate::new();
    let scene = Scene::over(|stores| {
        let sessions = Arc::new(Slow::new(Arc::clone(&stores.sessions), gate.clone()));
        Stores { sessions, ..stores }
    });
    let lock = scene.coordination.ports().assign_lock;
    gate.close();
    let look = async {
        gate.held(1).await;
        let mine = lock.try_acquire(&user("u1", 0).user_id, LIFE).await.expect("reachable");
        let other = lock.try_acquire(&user("u2", 0).user_id, LIFE).await.expect("reachable");
        gate.open();
        yield_now().await;
        (mine, other)
    };
    let (answer, (mine, other)) = tokio::join!(scene.consult("u1", 1), look);
    assert!(answer.session_id.is_some());
    assert_eq!(mine, None, "Z4");
    assert!(other.is_some(), "the lock is per user");
    let after = lock.try_acquire(&user("u1", 0).user_id, LIFE).await.expect("reachable");
    assert!(after.is_some(), "given back");
}

#[tokio::test(start_paused = true)]
async fn claiming_works_while_somebody_else_holds_the_lock() {
    let scene = Scene::start();
    let waiting = scene.consult("u1", 1).await.session_id.expect("open");
    let lock = scene.coordination.ports().assign_lock;
    let held = lock.try_acquire(&user("u1", 0).user_id, LIFE).await.expect("reachable");
    assert!(held.is_some());
    scene.agent("a1", 10, 0).await;
    // Online by a row of the store's own: no event, so the drain is not quicker than the claim.
    scene.put_agent(scene.agent_row("a1").await.online(5)).await;
    let claimed = scene.desk.claim(&agent("a1"), waiting, NOWHERE, &trace(), |_| {}).await;
    assert!(claimed.is_ok(), "Z4: {claimed:?}");
}
