//! Rules at the seams of use cases: what a notice, a position and a token are worth.

use kefu_core::{Caller, ConnId, Seq};
use kefu_desk::{Intent, Position};
use kefu_testkit::build::{trace, user};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

#[tokio::test(start_paused = true)]
async fn a_notice_is_kept_for_a_visitor_who_is_away() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    scene.consult("u0", 9).await;
    idle().await;
    scene.consult("u1", 1).await;
    pass(1.0).await;
    scene.leave(&visitor("u1"), 1).await;
    scene.leave(&agent("a1"), 10).await;
    pass(1.0).await;
    scene.resume("u1", 2).await;
    pass(1.0).await;
    assert_eq!(scene.kinds(2), ["offline_notice"], "Q2: told on coming back");
    scene.resume("u1", 3).await;
    pass(1.0).await;
    assert_eq!(scene.kinds(3), [""; 0], "Q2: once in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn any_later_connect_refreshes_the_balance_while_waiting() {
    let scene = Scene::start();
    let id = scene.consult("u1", 1).await.session_id.expect("open");
    let richer = Caller::User(user("u1", 700));
    let answer = scene.connect(&richer, 1, Intent::Resume, &[]).await.expect("connected");
    assert_eq!(answer.session_id, Some(id));
    assert_eq!(scene.session(id).await.priority, 700, "a resume is a chat.connect too");
    scene.desk.end(&visitor("u1"), id, NOWHERE, &trace()).await.expect("ended");
    let before = scene.session(id).await;
    let richest = Caller::User(user("u1", 900));
    let answer = scene.connect(&richest, 1, Intent::Resume, &[]).await.expect("connected");
    assert_eq!(answer.session_id, None, "S1: resume never opens one");
    assert_eq!(scene.session(id).await, before, "S2");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_healed_on_the_connection_of_a_former_owner() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    scene.transfer(&agent("a1"), session, "a2").await;
    scene.say(&visitor("u1"), 1, session, "for a2").await;
    idle().await;
    let position = |conn, id: &str| Position {
        conn: ConnId(conn),
        person: agent(id).person(),
        session_id: session,
        written: Seq(0),
    };
    scene.people.place(&[position(10, "a1"), position(20, "a2")]);
    scene.people.log().clear();
    pass(30.0).await;
    assert!(!scene.kinds(10).contains(&"message"), "A3: a position may be older than a transfer");
    assert!(scene.kinds(20).contains(&"message"), "M5");
}
