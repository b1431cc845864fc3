//! Without the wire between nodes, and after it came back (N4, N5, M5).

use std::sync::Arc;

use kefu_core::SessionId;
use kefu_desk::Stores;
use kefu_session::Status;
use kefu_testkit::Flaky;
use kefu_testkit::build::{admin, trace};

use super::{House, Node, clear, talking};
use crate::common::{NOWHERE, agent, idle, pass, visitor};

/// The wait after a gap, at most, and the catch-up itself (N4).
const CAUGHT_UP: f64 = 5.0;

/// The sessions that a console shows, by what it was pushed.
fn shown(node: &Node, conn: u64) -> Vec<SessionId> {
    let mut sessions = Vec::new();
    for push in node.scene.pushes(conn) {
        match push {
            kefu_messaging::Push::SessionNew(offer) => sessions.push(offer.session_id),
            kefu_messaging::Push::SessionRemoved { session_id, .. }
            | kefu_messaging::Push::Ended { session_id, .. } => {
                sessions.retain(|known| *known != session_id);
            }
            _ => {}
        }
    }
    sessions.sort_unstable();
    sessions
}

async fn owned(node: &Node, id: &str) -> Vec<SessionId> {
    let owned = node.scene.stores.sessions.list_owned(&admin(id)).await.expect("readable");
    let mut ids: Vec<_> = owned.iter().map(|session| session.id).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test(start_paused = true)]
async fn while_the_wire_is_cut_chat_goes_on_on_each_node() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let here = b.scene.consult("u2", 2).await.session_id.expect("open");
    idle().await;
    house.wire.cut(&b.scene.node);
    clear(&[&a, &b]);

    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    b.scene.say(&visitor("u2"), 2, here, "k").await;
    b.scene.say(&agent("a1"), 10, here, "k").await;
    pass(0.5).await;
    assert_eq!(message.seq.0, 1, "N5: stored and answered");
    assert_eq!((b.messages(10), b.messages(2)), (vec![1], vec![2]), "N5: delivered locally");
    let new = a.scene.consult("u3", 3).await.session_id.expect("open");
    idle().await;
    assert!(a.scene.session(new).await.is_owned_by(&admin("a1")), "N5: assigned by SQL");
}

#[tokio::test(start_paused = true)]
async fn after_the_wire_came_back_what_was_missed_arrives_once() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let kept = talking(&a, &b).await;
    let over = a.scene.consult("u2", 2).await.session_id.expect("open");
    idle().await;
    c.scene.agent("a2", 20, 5).await;
    let away = a.scene.consult("u3", 3).await.session_id.expect("open");
    idle().await;
    assert!(a.scene.session(away).await.is_owned_by(&admin("a2")));
    a.scene
        .desk
        .transfer(&agent("a2"), away, &admin("a1"), None, NOWHERE, &trace())
        .await
        .expect("moved");
    pass(20.0).await;
    house.wire.cut(&b.scene.node);
    b.clear();

    // What happens meanwhile on the other nodes.
    for key in ["1", "2", "3"] {
        a.scene.say(&visitor("u1"), 1, kept, key).await;
    }
    a.scene.desk.end(&visitor("u2"), over, NOWHERE, &trace()).await.expect("ended");
    c.scene.transfer(&agent("a1"), away, "a2").await;
    c.scene.desk.agent_offline(&agent("a2"), false, NOWHERE, &trace()).await.expect("offline");
    let new = a.scene.consult("u4", 4).await.session_id.expect("open");
    a.scene.say(&visitor("u4"), 4, new, "1").await;
    pass(60.0).await;
    assert_eq!(a.scene.session(new).await.status, Status::Active, "N5: assigned by SQL");

    house.wire.mend(&b.scene.node);
    pass(CAUGHT_UP).await;
    assert_eq!(b.firsts(10).len(), 4, "M5: three of one session, one of the other, each once");
    assert_eq!(b.count(10, "ended"), 1, "N4");
    assert_eq!(b.count(10, "session_removed"), 1, "N4");
    assert_eq!(b.count(10, "session_new"), 1, "N4");
    let begun = shown(&b, 10);
    assert_eq!(begun, [new], "N4: beyond what the console had");
    assert_eq!(owned(&b, "a1").await, [kept, new], "and so it shows what is owned");
    pass(120.0).await;
    assert_eq!(b.count(10, "session_new"), 1, "told once");
    assert_eq!(b.count(10, "ended"), 1, "told once");
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_flaps_does_not_put_the_catch_up_off_for_ever() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    house.wire.cut(&b.scene.node);
    a.scene.say(&visitor("u1"), 1, session, "k").await;
    b.clear();
    for _ in 0..10 {
        house.wire.mend(&b.scene.node);
        pass(1.0).await;
        house.wire.cut(&b.scene.node);
    }
    assert_eq!(b.firsts(10), [1], "N4, M5");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_during_the_wait_after_a_gap_is_told_at_once_and_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    house.wire.cut(&b.scene.node);
    a.scene.say(&visitor("u1"), 1, session, "lost").await;
    pass(5.0).await;
    house.wire.mend(&b.scene.node);
    idle().await;
    b.clear();
    let heard = a.scene.say(&visitor("u1"), 1, session, "heard").await;
    idle().await;
    assert_eq!(b.messages(10), [2], "N1: no need to wait");
    b.scene.acknowledge(&agent("a1"), &heard).await;
    pass(CAUGHT_UP).await;
    // Positions are contiguous, so what came behind the gap comes again; clients merge by id.
    assert_eq!(b.firsts(10), [2, 1, 2], "M5");
}

#[tokio::test(start_paused = true)]
async fn what_one_nodes_wire_lost_is_said_when_it_is_whole_although_no_other_heard_a_gap() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    house.wire.cut(&a.scene.node);
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(5.0).await;
    assert_eq!(b.count(10, "ended"), 0);
    house.wire.mend(&a.scene.node);
    pass(CAUGHT_UP).await;
    assert_eq!(b.count(10, "ended"), 1, "N4: the console is right again, told once");
    pass(60.0).await;
    assert_eq!(b.count(10, "ended"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_catch_up_keeps_no_node_from_listening() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    house.wire.cut(&b.scene.node);
    for n in 0..2_000 {
        let id = format!("v{n}");
        a.scene.consult(&id, 1_000 + n).await;
        let open = a.scene.resume(&id, 1_000 + n).await.session_id.expect("open");
        a.scene.desk.end(&visitor(&id), open, NOWHERE, &trace()).await.expect("ended");
        a.scene.leave(&visitor(&id), 1_000 + n).await;
    }
    idle().await;
    b.clear();
    house.wire.mend(&b.scene.node);
    // Some 6,000 changes at 50 per 20 ms, after two to three seconds.
    let (mut said, mut late) = (0, 0);
    for n in 0..80 {
        let message = a.scene.say(&visitor("u1"), 1, session, &n.to_string()).await;
        idle().await;
        said += 1;
        late += usize::from(b.messages(10).last() != Some(&message.seq.0));
        b.scene.acknowledge(&agent("a1"), &message).await;
        pass(0.1).await;
    }
    assert_eq!((said, late), (80, 0), "N1, N4: told at once throughout");
    assert!(b.count(10, "session_new") <= 2_000, "each at most once");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_without_the_store_is_told_when_it_is_back() {
    let house = House::build();
    let flaky = Arc::new(Flaky::new(Arc::clone(&house.stores.sessions)));
    let stores = Stores { sessions: flaky.clone(), ..house.stores.clone() };
    let (a, b) = (house.node("a").await, house.node_over("b", stores).await);
    let session = talking(&a, &b).await;
    flaky.cut();
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(20.0).await;
    assert_eq!(b.count(10, "ended"), 0);
    flaky.mend();
    pass(CAUGHT_UP).await;
    assert_eq!(b.count(10, "ended"), 1, "N5: heals by itself");
    pass(60.0).await;
    assert_eq!(b.count(10, "ended"), 1, "told once");
}
