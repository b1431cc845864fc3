//! Stores that fail: nothing is acknowledged that is not there, and what is there is told (A2, N5).

use std::sync::Arc;

use kefu_core::{ConnId, ErrorCode, Person};
use kefu_desk::{Intent, SendRequest, Stores};
use kefu_messaging::{Draft, MessageStore};
use kefu_session::SessionStore;
use kefu_testkit::Flaky;
use kefu_testkit::build::{admin, key, trace, user};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

fn flaky_messages() -> (Scene, Arc<Flaky<dyn MessageStore>>) {
    let mut flaky = None;
    let scene = Scene::over(|stores| {
        let messages = Arc::new(Flaky::new(Arc::clone(&stores.messages)));
        flaky = Some(Arc::clone(&messages));
        Stores { messages, ..stores }
    });
    (scene, flaky.expect("wrapped"))
}

fn flaky_sessions() -> (Scene, Arc<Flaky<dyn SessionStore>>) {
    let mut flaky = None;
    let scene = Scene::over(|stores| {
        let sessions = Arc::new(Flaky::new(Arc::clone(&stores.sessions)));
        flaky = Some(Arc::clone(&sessions));
        Stores { sessions, ..stores }
    });
    (scene, flaky.expect("wrapped"))
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_commit_answer_was_lost_is_acked_and_pushed() {
    let (scene, flaky) = flaky_messages();
    let session = scene.talking().await;
    flaky.lose_answer(1);
    let message = scene.say(&visitor("u1"), 1, session, "k").await;
    idle().await;
    let pushed = scene.kinds(10).iter().filter(|kind| **kind == "message").count();
    assert_eq!(pushed, 1, "the key resolves the answer, the outbox the push");
    assert_eq!(scene.session(session).await.last_msg_id, Some(message.msg_id));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_is_acked_and_it_heals_by_itself() {
    let (scene, flaky) = flaky_messages();
    let session = scene.talking().await;
    flaky.cut();
    let request = SendRequest {
        session_id: Some(session),
        client_msg_id: key("k"),
        draft: Draft::Text("hi".into()),
        open_session: None,
    };
    let caller = visitor("u1");
    let sent =
        scene.desk.send(&caller, Some(ConnId(1)), request.clone(), &trace()).expect("queued");
    let error = kefu_desk::DeskError::from(sent.await.expect_err("away"));
    assert_eq!(error.code(), ErrorCode::Unavailable, "N5");
    assert!(!error.outward().contains("cut"), "no reason leaves the process");
    flaky.mend();
    let sent = scene.desk.send(&caller, Some(ConnId(1)), request, &trace()).expect("queued");
    assert!(!sent.await.expect("stored").duplicate);
    idle().await;
    assert_eq!(scene.kinds(10), ["message"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_can_never_be_told_holds_up_nobody() {
    let (scene, flaky) = flaky_sessions();
    scene.agent("a1", 10, 1).await;
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    scene.consult("u2", 2).await;
    pass(1.0).await;
    scene.people.log().clear();
    flaky.cut_with(kefu_core::StoreFault::internal("a row nobody can read"));
    let online = scene.desk.agent_online(&agent("a1"), 2, NOWHERE, &trace()).await;
    online.expect("assignment goes on");
    idle().await;
    scene.say(&visitor("u1"), 1, session, "k").await;
    pass(1.0).await;
    assert!(scene.kinds(10).contains(&"message"), "others are told: {:?}", scene.kinds(10));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_told_now_is_told_later_and_in_order() {
    let (scene, flaky) = flaky_sessions();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    scene.people.log().clear();
    let to = admin("a2");
    let moved = scene.desk.transfer(&agent("a1"), session, &to, None, NOWHERE, &trace()).await;
    moved.expect("transferred");
    flaky.cut();
    pass(5.0).await;
    assert!(!scene.kinds(20).contains(&"session_new"), "held up");
    flaky.mend();
    scene.say(&visitor("u1"), 1, session, "k").await;
    pass(5.0).await;
    let told = scene.kinds(20);
    let at = |wanted| told.iter().position(|kind| *kind == wanted).expect("told");
    assert!(at("session_new") < at("message"), "A2: nothing is lost, nothing overtakes: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connect_that_fails_holds_no_lease() {
    let (scene, flaky) = flaky_sessions();
    flaky.cut();
    let refused = scene.connect(&visitor("u1"), 1, Intent::Consult, &[]).await;
    assert_eq!(refused.expect_err("away").code(), ErrorCode::Unavailable, "N5");
    let person = Person::User(user("u1", 0).user_id);
    assert_eq!(scene.coordination.ports().presence.count(&person).await, Ok(0));
    flaky.mend();
    assert!(scene.consult("u1", 1).await.session_id.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_opening_whose_answer_was_lost_is_served_all_the_same() {
    let (scene, flaky) = flaky_sessions();
    scene.agent("a1", 10, 5).await;
    flaky.lose_answer(1);
    let lost = scene.connect(&visitor("u1"), 1, Intent::Consult, &[]).await;
    assert_eq!(lost.expect_err("lost").code(), ErrorCode::Unavailable);
    let answer = scene.consult("u1", 1).await;
    let id = answer.session_id.expect("the one that was opened");
    assert_eq!(scene.session(id).await.version, 1, "S1: opened once");
    let scene = scene.sweeping();
    pass(1.1).await;
    assert!(scene.session(id).await.is_owned_by(&admin("a1")), "Z3");
}
