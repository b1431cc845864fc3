//! Typing marks (P3): relayed, never stored, and they always end.

use kefu_core::{ConnId, ErrorCode, SessionId};
use kefu_testkit::build::{admin, trace};

use crate::common::{NOWHERE, Scene, agent, idle, kind, pass, visitor};

async fn user_types(scene: &Scene, conn: u64, session: SessionId, is_typing: bool) {
    let typed = scene.desk.typing(&visitor("u1"), ConnId(conn), session, is_typing, &trace()).await;
    typed.expect("relayed");
    idle().await;
}

fn relayed(scene: &Scene, conn: u64) -> Vec<(u64, &'static str)> {
    let typing = |sent: &crate::people::Sent| {
        let kind = kind(&sent.push);
        kind.starts_with("typing").then_some((sent.second as u64, kind))
    };
    scene.sent_to(conn).iter().filter_map(typing).collect()
}

#[tokio::test(start_paused = true)]
async fn a_mark_ends_by_itself_after_six_seconds() {
    let scene = Scene::start();
    let session = scene.talking().await;
    user_types(&scene, 1, session, true).await;
    pass(30.0).await;
    assert_eq!(relayed(&scene, 10), [(0, "typing"), (6, "typing ends")], "P3");
    assert_eq!(relayed(&scene, 1), [], "not back to the typist");
}

#[tokio::test(start_paused = true)]
async fn typing_on_prolongs_it() {
    let scene = Scene::start();
    let session = scene.talking().await;
    for _ in 0..3 {
        user_types(&scene, 1, session, true).await;
        pass(4.0).await;
    }
    pass(30.0).await;
    assert_eq!(relayed(&scene, 10).last(), Some(&(14, "typing ends")), "six after the last");
    let ends = relayed(&scene, 10).iter().filter(|(_, kind)| *kind == "typing ends").count();
    assert_eq!(ends, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_ends_it() {
    let scene = Scene::start();
    let session = scene.talking().await;
    user_types(&scene, 1, session, true).await;
    scene.say(&visitor("u1"), 1, session, "k").await;
    idle().await;
    assert_eq!(relayed(&scene, 10), [(0, "typing"), (0, "typing ends")], "P3");
}

#[tokio::test(start_paused = true)]
async fn the_other_sides_message_does_not_end_it() {
    let scene = Scene::start();
    let session = scene.talking().await;
    user_types(&scene, 1, session, true).await;
    scene.say(&agent("a1"), 10, session, "k").await;
    pass(3.0).await;
    assert_eq!(relayed(&scene, 10), [(0, "typing")]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_session_ends_it() {
    let scene = Scene::start();
    let session = scene.talking().await;
    user_types(&scene, 1, session, true).await;
    scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    assert_eq!(relayed(&scene, 10), [(0, "typing"), (0, "typing ends")], "P3");
    let late = scene.desk.typing(&visitor("u1"), ConnId(1), session, true, &trace()).await;
    assert_eq!(late.expect_err("refused").code(), ErrorCode::SessionClosed);
}

#[tokio::test(start_paused = true)]
async fn the_typists_connection_ends_it_and_another_one_does_not() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.consult("u1", 2).await;
    user_types(&scene, 1, session, true).await;
    scene.leave(&visitor("u1"), 2).await;
    idle().await;
    assert_eq!(relayed(&scene, 10), [(0, "typing")]);
    scene.leave(&visitor("u1"), 1).await;
    idle().await;
    assert_eq!(relayed(&scene, 10), [(0, "typing"), (0, "typing ends")], "P3");
}

#[tokio::test(start_paused = true)]
async fn saying_so_ends_it_once() {
    let scene = Scene::start();
    let session = scene.talking().await;
    user_types(&scene, 1, session, false).await;
    user_types(&scene, 1, session, true).await;
    user_types(&scene, 1, session, false).await;
    user_types(&scene, 1, session, false).await;
    assert_eq!(relayed(&scene, 10), [(0, "typing"), (0, "typing ends")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_reaches_an_agent_who_lost_the_session() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    user_types(&scene, 1, session, true).await;
    let to = admin("a2");
    let moved = scene.desk.transfer(&agent("a1"), session, &to, None, NOWHERE, &trace()).await;
    moved.expect("transferred");
    idle().await;
    scene.people.log().clear();
    pass(30.0).await;
    assert_eq!(relayed(&scene, 10), [], "A3: not even the end of it");
    user_types(&scene, 1, session, true).await;
    assert_eq!(relayed(&scene, 10), [], "A3");
    assert_eq!(relayed(&scene, 20).len(), 1, "M2: the new owner");
}

#[tokio::test(start_paused = true)]
async fn an_agents_mark_ends_for_the_user_when_the_session_moves() {
    let scene = Scene::start();
    let session = scene.talking().await;
    let typed = scene.desk.typing(&agent("a1"), ConnId(10), session, true, &trace()).await;
    typed.expect("relayed");
    idle().await;
    scene.desk.agent_offline(&agent("a1"), true, NOWHERE, &trace()).await.expect("offline");
    idle().await;
    assert_eq!(relayed(&scene, 1), [(0, "typing"), (0, "typing ends")], "P3");
}

#[tokio::test(start_paused = true)]
async fn while_waiting_nobody_is_told() {
    let scene = Scene::start();
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    user_types(&scene, 1, session, true).await;
    pass(30.0).await;
    assert!(scene.people.log().iter().all(|sent| !kind(&sent.push).starts_with("typing")));
}
