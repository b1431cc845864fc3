//! People on different nodes talk as if there were one (M2, M3, N1, N3).

use kefu_messaging::{MessageStatus, Push, Receipt, Side};
use kefu_session::RatingRequest;
use kefu_testkit::build::{admin, agent_info, trace};

use super::{House, Node, clear, talking};
use crate::common::{NOWHERE, Scene, agent, idle, kind, pass, visitor};

fn typing(scene: &Scene, conn: u64) -> Vec<&'static str> {
    scene.kinds(conn).into_iter().filter(|kind| kind.starts_with("typing")).collect()
}

fn acks(node: &Node, conn: u64) -> Vec<(MessageStatus, Side)> {
    let ack = |push: &Push| match push {
        Push::PeerAck { status, side, .. } => Some((*status, *side)),
        _ => None,
    };
    node.scene.pushes(conn).iter().filter_map(ack).collect()
}

#[tokio::test(start_paused = true)]
async fn a_visitor_and_an_agent_on_two_nodes_talk() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let assigned = Push::Assigned { session_id: session, agent: agent_info("a1") };
    assert_eq!(a.scene.pushes(1), [assigned], "S1");
    assert_eq!(b.scene.kinds(10), ["session_new"], "N1");
    clear(&[&a, &b]);

    let question = a.scene.say(&visitor("u1"), 1, session, "q").await;
    idle().await;
    assert_eq!(b.messages(10), [1], "M2");
    b.scene.acknowledge(&agent("a1"), &question).await;
    idle().await;
    assert_eq!(acks(&a, 1), [(MessageStatus::Delivered, Side::User)], "M3");
    let (msg_id, receipt) = (question.msg_id, Receipt::Read);
    let (by, trace_id) = (agent("a1"), trace());
    let read = b.scene.desk.acknowledge(&by, None, msg_id, receipt, false, &trace_id);
    read.await.expect("taken");
    let answer = b.scene.say(&agent("a1"), 10, session, "a").await;
    idle().await;
    assert_eq!(a.messages(1), [2], "M2");
    assert_eq!(acks(&a, 1)[1], (MessageStatus::Read, Side::User), "M3");
    a.scene.acknowledge(&visitor("u1"), &answer).await;
    idle().await;
    assert_eq!(acks(&b, 10), [(MessageStatus::Delivered, Side::Agent)], "M3");

    let rating = RatingRequest { score: 5, comment: String::new() };
    b.scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    a.scene.desk.rate(&visitor("u1"), session, &rating, &trace()).await.expect("rated");
    pass(60.0).await;
    assert_eq!(a.count(1, "ended"), 1, "S4: once");
    assert_eq!(b.count(10, "ended"), 1, "S4: once");
    assert_eq!((a.messages(1), b.messages(10)), (vec![2], vec![1]), "never a second copy");
}

#[tokio::test(start_paused = true)]
async fn typing_crosses_nodes_and_always_ends() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    a.scene.types(&visitor("u1"), 1, session).await;
    pass(5.9).await;
    assert_eq!(typing(&b.scene, 10), ["typing"], "P3");
    pass(0.2).await;
    assert_eq!(typing(&b.scene, 10), ["typing", "typing ends"], "P3: after 6 s");
    b.scene.types(&agent("a1"), 10, session).await;
    idle().await;
    b.scene.say(&agent("a1"), 10, session, "k").await;
    idle().await;
    assert_eq!(typing(&a.scene, 1), ["typing", "typing ends"], "P3: on a message");
    a.scene.types(&visitor("u1"), 1, session).await;
    idle().await;
    b.scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(30.0).await;
    assert_eq!(typing(&b.scene, 10)[2..], ["typing", "typing ends"], "P3: on the end, once");
}

#[tokio::test(start_paused = true)]
async fn everything_reaches_the_devices_on_every_node_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    a.scene.agent("a1", 11, 0).await;
    b.scene.consult("u1", 2).await;
    b.scene.consult("u1", 3).await;
    clear(&[&a, &b]);

    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    idle().await;
    assert_eq!(a.scene.kinds(11), ["message"], "M2: the receiver's device here");
    assert_eq!(b.scene.kinds(10), ["message"], "M2: the receiver's device elsewhere");
    assert_eq!(a.scene.kinds(1), [] as [&str; 0], "the origin has its answer");
    assert_eq!(b.scene.kinds(2), ["own message"], "M2: the sender's device elsewhere");
    assert_eq!(b.scene.kinds(3), ["own message"], "M2: no device hides another");
    b.scene.acknowledge(&agent("a1"), &message).await;
    idle().await;
    for (node, conn) in [(&a, 1), (&b, 2), (&b, 3)] {
        assert_eq!(acks(node, conn).len(), 1, "M2: every device of the sender, once");
    }
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(30.0).await;
    for (node, conn) in [(&a, 1), (&b, 2), (&b, 3), (&a, 11), (&b, 10)] {
        assert_eq!(node.count(conn, "ended"), 1, "once on every device");
        assert!(node.messages(conn).len() <= 1, "never a second copy");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_does_on_one_node_shows_on_the_others_of_theirs() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    a.scene.agent("a1", 11, 0).await;
    b.scene.agent("a1", 10, 3).await;
    idle().await;
    let last = a
        .scene
        .sent_to(11)
        .into_iter()
        .map(|sent| sent.push)
        .rfind(|push| kind(push) == "agent_status");
    let status = Push::AgentStatus { online: true, max_sessions: 3, active_sessions: 0 };
    assert_eq!(last, Some(status), "M2: the other console follows");
    a.scene.leave(&agent("a1"), 11).await;
    assert!(b.scene.agent_row("a1").await.live, "Z7: a lease on another node counts");
    b.scene.leave(&agent("a1"), 10).await;
    assert!(!b.scene.agent_row("a1").await.live, "Z7");
    assert_eq!(b.scene.agent_row("a1").await.info.admin_id, admin("a1"));
}
