//! What was read before a transfer and is pushed after it: an agent who was told that the session is gone
//! gets nothing more of it (A3).

use std::sync::Arc;
use std::time::Duration;

use kefu_assignment::Origin;
use kefu_core::{ConnId, ErrorCode, Seq, SessionId};
use kefu_desk::{DeskError, Position, Stores};
use kefu_messaging::{MessageStatus, MessageStore, Push, SessionOffer};
use kefu_session::SessionStore;
use kefu_testkit::Late;
use kefu_testkit::build::trace;

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

/// A claim whose answer is late, while the session is handed on: what the claimant was given, and what
/// they were told.
async fn claimed_and_handed_on() -> (Scene, Result<(), DeskError>, Vec<SessionId>) {
    let Delayed { scene, messages, .. } = delayed();
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    for (id, conn) in [("a1", 10), ("a2", 20)] {
        scene.agent(id, conn, 0).await;
        // Online by a row of the store's own: no event, so the drain is not quicker than the claim.
        scene.put_agent(scene.agent_row(id).await.online(5)).await;
    }
    scene.people.log().clear();
    let gate = messages.hold_next();
    let mut given = Vec::new();
    let claimant = agent("a1");
    let origin = Origin(Some(ConnId(10)));
    let trace = trace();
    let give = |offer: &SessionOffer| given.push(offer.session_id);
    let claim = scene.desk.claim(&claimant, session, origin, &trace, give);
    let handed_on = async {
        gate.held(1).await;
        scene.transfer(&claimant, session, "a2").await;
        idle().await;
        gate.open();
    };
    let (claimed, ()) = tokio::join!(claim, handed_on);
    idle().await;
    (scene, claimed, given)
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_not_given_after_the_session_was_taken_away() {
    let (scene, claimed, given) = claimed_and_handed_on().await;
    assert_eq!(scene.kinds(10), ["session_removed"]);
    assert_eq!(given, [], "A3: it would stay on the screen for ever");
    let refused = claimed.expect_err("it is somebody else's by now");
    assert_eq!(refused.code(), ErrorCode::Conflict, "Z6");
    assert_eq!(scene.kinds(20), ["session_new"]);
}

/// How long what is already on its way takes.
const LAG: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn typing_by_a_row_read_before_a_transfer_goes_between_who_holds_the_session_now() {
    let new: &[&str] = &["session_new", "typing"];
    for (by, conn, to_new) in [(visitor("u1"), 1, new), (agent("a1"), 10, &new[..1])] {
        let Delayed { scene, sessions, .. } = delayed();
        let session = scene.talking().await;
        scene.agent("a2", 20, 5).await;
        let gate = sessions.hold_next();
        let typed = scene.types(&by, conn, session);
        let transferred = async {
            gate.held(1).await;
            scene.transfer(&agent("a1"), session, "a2").await;
            idle().await;
            gate.open();
        };
        tokio::join!(typed, transferred);
        idle().await;
        assert_eq!(scene.kinds(10), ["session_removed"], "A3");
        assert_eq!(scene.kinds(20), to_new, "P3: who has it now sees the visitor type");
        assert_eq!(scene.kinds(1), ["assigned"], "A3: nobody sees a former owner type");
    }
}

#[tokio::test(start_paused = true)]
async fn typing_on_its_way_does_not_overtake_a_transfer() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    scene.people.lag("typing", LAG);
    scene.types(&visitor("u1"), 1, session).await;
    pass(0.01).await;
    scene.transfer(&agent("a1"), session, "a2").await;
    pass(0.3).await;
    assert_eq!(scene.kinds(10), ["typing", "session_removed"], "A3: nothing after it");
}

/// `a1` lacks a message, and the second look of healing has just read it.
async fn healing(
    Delayed { scene, messages, .. }: Delayed,
) -> (Scene, SessionId, Arc<Late<dyn MessageStore>>) {
    let scene = scene.sweeping();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let message = scene.say(&visitor("u1"), 1, session, "k").await;
    scene.acknowledge(&agent("a1"), &message).await;
    idle().await;
    scene.people.log().clear();
    let (conn, person) = (ConnId(10), agent("a1").person());
    let position = Position { conn, person, session_id: session, written: Seq(0) };
    scene.people.place(&[position]);
    // After the first look (M5); the second one is the next that reads messages.
    pass(15.0).await;
    messages.hold_next().held(1).await;
    (scene, session, messages)
}

#[tokio::test(start_paused = true)]
async fn what_healing_read_before_a_transfer_reaches_no_former_owner() {
    let (scene, session, messages) = healing(delayed()).await;
    scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    messages.gate().open();
    idle().await;
    assert_eq!(scene.kinds(10), ["session_removed"], "A3");
}

#[tokio::test(start_paused = true)]
async fn what_is_healed_does_not_overtake_a_transfer() {
    let (scene, session, messages) = healing(delayed()).await;
    scene.people.lag("message", LAG);
    messages.gate().open();
    pass(0.01).await;
    scene.transfer(&agent("a1"), session, "a2").await;
    pass(0.3).await;
    assert_eq!(scene.kinds(10), ["message", "session_removed"], "A3: nothing after it");
}
