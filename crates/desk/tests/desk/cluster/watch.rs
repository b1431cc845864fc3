//! Supervisors look into sessions: read-only, whatever node the people are on.

use std::sync::atomic::Ordering;

use kefu_core::{ConnId, ErrorCode, SessionId};
use kefu_messaging::{Push, Receipt, Side};
use kefu_testkit::build::{admin, supervisor_caller, trace};

use super::{House, Node, clear, talking};
use crate::common::{NOWHERE, Scene, agent, idle, kind, pass, visitor};

const BOSS: u64 = 30;

async fn watch(scene: &Scene, session: SessionId) {
    let watched = scene.desk.watch_session(&supervisor_caller("boss"), ConnId(BOSS), session).await;
    let (view, _) = watched.expect("watched");
    scene.people.served(ConnId(BOSS), session, view.session.last_seq);
    idle().await;
}

/// What the supervisor saw of the session: lists and the line are everybody's.
fn seen(node: &Node) -> Vec<&'static str> {
    node.scene.kinds(BOSS)
}

#[tokio::test(start_paused = true)]
async fn a_watcher_on_a_third_node_sees_both_sides() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let session = talking(&a, &b).await;
    c.scene.supervisor("boss", BOSS).await;
    watch(&c.scene, session).await;
    clear(&[&a, &b, &c]);

    a.scene.types(&visitor("u1"), 1, session).await;
    idle().await;
    let question = a.scene.say(&visitor("u1"), 1, session, "q").await;
    idle().await;
    b.scene.acknowledge(&agent("a1"), &question).await;
    b.scene.say(&agent("a1"), 10, session, "a").await;
    idle().await;
    let expected = ["typing seen", "message", "typing seen to end", "peer_ack", "message"];
    let mut got = seen(&c);
    got.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(got, wanted, "N1: {:?}", c.scene.pushes(BOSS));
    let typing = c.scene.pushes(BOSS).into_iter().find(|push| kind(push) == "typing seen");
    let by_user = Push::WatchedTyping { session_id: session, is_typing: true, by: Side::User };
    assert_eq!(typing, Some(by_user));
    assert!(
        c.scene.pushes(BOSS).iter().all(|push| !matches!(push, Push::Message { own: true, .. }))
    );
    assert_eq!(b.scene.kinds(10).iter().filter(|kind| **kind == "message").count(), 1, "once");

    clear(&[&a, &b, &c]);
    b.scene.agent("a2", 20, 5).await;
    b.scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    assert_eq!(seen(&c), ["assigned"], "it stays over a transfer");
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(30.0).await;
    assert_eq!(seen(&c), ["assigned", "ended"], "once, and nothing after it");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_unwatch_and_with_its_connection() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let session = talking(&a, &b).await;
    let boss = supervisor_caller("boss");
    c.scene.supervisor("boss", BOSS).await;
    watch(&c.scene, session).await;
    c.scene.desk.unwatch_session(&boss, ConnId(BOSS), session).await.expect("ended");
    c.scene.desk.unwatch_session(&boss, ConnId(BOSS), session).await.expect("harmless");
    clear(&[&c]);
    a.scene.say(&visitor("u1"), 1, session, "one").await;
    idle().await;
    assert_eq!(seen(&c), [] as [&str; 0]);
    watch(&c.scene, session).await;
    c.scene.leave(&boss, BOSS).await;
    c.scene.supervisor("boss", 31).await;
    clear(&[&c]);
    a.scene.say(&visitor("u1"), 1, session, "two").await;
    pass(30.0).await;
    assert_eq!((seen(&c), c.scene.kinds(31)), (vec![], vec![]));
}

/// A node that did not hear of the watch says nothing; the position of the watcher tells (M5).
#[tokio::test(start_paused = true)]
async fn what_a_watcher_missed_is_healed() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let session = talking(&a, &b).await;
    c.scene.supervisor("boss", BOSS).await;
    watch(&c.scene, session).await;
    clear(&[&c]);
    a.mute.0.store(true, Ordering::SeqCst);
    a.scene.say(&visitor("u1"), 1, session, "lost").await;
    idle().await;
    assert_eq!(seen(&c), [] as [&str; 0]);
    a.mute.0.store(false, Ordering::SeqCst);
    pass(25.0).await;
    assert_eq!(seen(&c), ["message"], "M5");
}

#[tokio::test(start_paused = true)]
async fn only_supervisors_look_on() {
    let scene = Scene::start();
    let session = scene.talking().await;
    let unknown = SessionId::new(1).expect("positive");
    let conn = ConnId(10);
    for caller in [agent("a1"), visitor("u1")] {
        for session in [session, unknown] {
            let watched = scene.desk.watch_session(&caller, conn, session).await;
            assert_eq!(watched.err().map(|e| e.code()), Some(ErrorCode::Forbidden));
            let ended = scene.desk.unwatch_session(&caller, conn, session).await;
            assert_eq!(ended.err().map(|e| e.code()), Some(ErrorCode::Forbidden));
            let explained = scene.desk.explain(&caller, session).await;
            assert_eq!(explained.err().map(|e| e.code()), Some(ErrorCode::Forbidden));
        }
        let board = scene.desk.board(&caller, conn, true).await;
        assert_eq!(board.err().map(|e| e.code()), Some(ErrorCode::Forbidden));
    }
    let boss = supervisor_caller("boss");
    scene.supervisor("boss", BOSS).await;
    let watched = scene.desk.watch_session(&boss, ConnId(BOSS), unknown).await;
    assert_eq!(watched.err().map(|e| e.code()), Some(ErrorCode::NotFound));
    let explained = scene.desk.explain(&boss, unknown).await;
    assert_eq!(explained.err().map(|e| e.code()), Some(ErrorCode::NotFound));
    let records = scene.desk.explain(&boss, session).await.expect("explained");
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].admin_id, Some(admin("a1")));
    // Reading on behalf of nobody leaves no trace: it is the agent's to acknowledge (A3).
    let message = scene.say(&visitor("u1"), 1, session, "k").await;
    let (msg_id, receipt) = (message.msg_id, Receipt::Read);
    let acked = scene.desk.acknowledge(&boss, None, msg_id, receipt, false, &trace()).await;
    assert_eq!(acked.err().map(|e| e.code()), Some(ErrorCode::Forbidden));
}

#[tokio::test(start_paused = true)]
async fn one_connection_watches_fifty_sessions() {
    let scene = Scene::start();
    scene.supervisor("boss", BOSS).await;
    let boss = supervisor_caller("boss");
    let mut sessions = Vec::new();
    for n in 0..51_u64 {
        sessions.push(scene.consult(&format!("u{n}"), 100 + n).await.session_id.expect("open"));
    }
    for session in &sessions[..50] {
        watch(&scene, *session).await;
    }
    watch(&scene, sessions[0]).await;
    let one_more = scene.desk.watch_session(&boss, ConnId(BOSS), sessions[50]).await;
    assert_eq!(one_more.err().map(|e| e.code()), Some(ErrorCode::BadRequest));
    scene.desk.unwatch_session(&boss, ConnId(BOSS), sessions[0]).await.expect("ended");
    watch(&scene, sessions[50]).await;
}
