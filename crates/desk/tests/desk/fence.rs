//! What was read before a transfer and is pushed after it: an agent who was told that the session is gone
//! gets nothing more of it (A3).

use std::sync::Arc;

use kefu_desk::Stores;
use kefu_messaging::{MessageStatus, MessageStore, Push};
use kefu_session::SessionStore;
use kefu_testkit::Late;

use crate::common::{Scene, agent, idle, pass, visitor};

struct Delayed {
    scene: Scene,
    sessions: Arc<Late<dyn SessionStore>>,
    messages: Arc<Late<dyn MessageStore>>,
}

fn delayed() -> Delayed {
    let mut late = None;
    let scene = Scene::over(|stores| {
        let sessions = Arc::new(Late::new(Arc::clone(&stores.sessions)));
        let messages = Arc::new(Late::new(Arc::clone(&stores.messages)));
        late = Some((Arc::clone(&sessions), Arc::clone(&messages)));
        Stores { sessions, messages, ..stores }
    });
    let (sessions, messages) = late.expect("wrapped");
    Delayed { scene, sessions, messages }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_read_the_row_before_a_transfer_goes_to_the_new_owner() {
    let Delayed { scene, sessions, .. } = delayed();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    scene.say(&visitor("u1"), 1, session, "k").await;
    pass(0.5).await;
    let gate = sessions.hold_next();
    pass(0.6).await;
    gate.held(1).await;
    scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    assert_eq!(scene.kinds(10), ["message", "session_removed"], "the retry waits for its answer");
    gate.open();
    idle().await;
    assert_eq!(scene.kinds(10), ["message", "session_removed"], "A3");
    let attempt = |push: &Push| match push {
        Push::Message { attempt, .. } => Some(*attempt),
        _ => None,
    };
    let attempts: Vec<_> = scene.pushes(20).iter().filter_map(attempt).collect();
    assert_eq!(attempts, [1, 2], "M2: with the session, and again");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_committed_before_a_transfer_is_told_to_the_new_owner() {
    let Delayed { scene, messages, .. } = delayed();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let message = scene.say(&agent("a1"), 10, session, "k").await;
    idle().await;
    let gate = messages.hold_next();
    let reader = visitor("u1");
    let acknowledged = scene.acknowledge(&reader, &message);
    let transferred = async {
        gate.held(1).await;
        scene.transfer(&agent("a1"), session, "a2").await;
        idle().await;
        gate.open();
    };
    tokio::join!(acknowledged, transferred);
    idle().await;
    assert_eq!(scene.kinds(10), ["session_removed"], "A3");
    let told = |push: &Push| match push {
        Push::PeerAck { status, .. } => Some(*status),
        _ => None,
    };
    let told: Vec<_> = scene.pushes(20).iter().filter_map(told).collect();
    assert_eq!(told, [MessageStatus::Delivered], "M2: who holds the side now");
}
