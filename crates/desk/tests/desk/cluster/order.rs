//! What arrives late or in another order than it happened (A3, N2).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kefu_core::{Actor, AdminId, SessionId};
use kefu_desk::{NodeBus, NodeMessage, Relayed};
use kefu_events::{Event, How, RequeueReason};
use kefu_messaging::{Message, MessageStatus, Push, RemovalReason};
use kefu_testkit::build::{admin, trace, user};

use super::{House, Node, clear, named, talking};
use crate::common::{NOWHERE, agent, idle, pass, visitor};

/// The word of another node about a message that was stored while `owner` had the session.
fn stored(message: &Message, owner: &AdminId, version: i64) -> Event {
    Event::MessageStored {
        session_id: message.session_id,
        msg_id: message.msg_id,
        seq: message.seq,
        user_id: user("u1", 0).user_id,
        admin_id: Some(owner.clone()),
        version,
    }
}

async fn transferred(a: &Node, b: &Node, c: &Node) -> (SessionId, Arc<Message>, i64) {
    let session = talking(a, b).await;
    c.scene.agent("a2", 20, 5).await;
    c.scene.agent("a1", 12, 0).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "before").await;
    let version = a.scene.session(session).await.version;
    a.scene.acknowledge(&agent("a1"), &message).await;
    b.scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    (session, message, version)
}

#[tokio::test(start_paused = true)]
async fn after_a_transfer_between_nodes_the_former_owner_gets_nothing_anywhere() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let (session, _, _) = transferred(&a, &b, &c).await;
    let reason = RemovalReason::Transferred(admin("a2"));
    let removed = Push::SessionRemoved { session_id: session, reason };
    assert!(b.scene.pushes(10).contains(&removed), "Z5: on the node of the transfer");
    assert!(c.scene.pushes(12).contains(&removed), "Z5: on the node of the target");
    assert_eq!(c.count(20, "session_new"), 1, "Z5");
    assert_eq!(a.count(1, "assigned"), 2, "Z5: the visitor's node");
    clear(&[&a, &b, &c]);

    a.scene.say(&visitor("u1"), 1, session, "after").await;
    a.scene.types(&visitor("u1"), 1, session).await;
    pass(30.0).await;
    c.scene.desk.end(&agent("a2"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "A3");
    assert_eq!(c.scene.kinds(12), [] as [&str; 0], "A3");
    assert_eq!(c.messages(20), [2, 2, 2, 2], "M2, M3: the new owner");
    assert_eq!(a.count(1, "ended"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_after_the_transfer_it_preceded_goes_to_the_new_owner() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let (_, message, version) = transferred(&a, &b, &c).await;
    clear(&[&a, &b, &c]);
    let late = stored(&message, &admin("a1"), version);
    for node in [&b, &c] {
        house.say(node, late.clone(), Some(Arc::clone(&message))).await;
    }
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "A3");
    assert_eq!(c.scene.kinds(12), [] as [&str; 0], "A3");
    assert_eq!(c.messages(20), [1], "M2: who owns it now");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_after_the_end_reaches_no_former_owner() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let (session, message, version) = transferred(&a, &b, &c).await;
    c.scene.desk.end(&agent("a2"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    clear(&[&a, &b, &c]);
    house.say(&b, stored(&message, &admin("a1"), version), Some(Arc::clone(&message))).await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "A3: the end does not lift the fence");
    house.say(&c, stored(&message, &admin("a1"), version), Some(message)).await;
    assert_eq!(c.messages(20), [1], "S2: visible to who had it at the end");
}

#[tokio::test(start_paused = true)]
async fn a_requeue_that_comes_late_takes_nothing_from_who_has_the_session_again() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    b.scene.desk.agent_offline(&agent("a1"), true, NOWHERE, &trace()).await.expect("offline");
    let waiting = b.scene.session(session).await.version;
    b.scene.agent("a1", 10, 5).await;
    idle().await;
    assert!(b.scene.session(session).await.is_owned_by(&admin("a1")));
    clear(&[&a, &b]);
    let late = Event::SessionRequeued {
        session_id: session,
        user_id: user("u1", 0).user_id,
        from: admin("a1"),
        reason: RequeueReason::AgentOffline,
        version: waiting,
    };
    house.say(&b, late.clone(), None).await;
    house.say(&a, late, None).await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "the console keeps what its agent owns");
    assert_eq!(a.scene.kinds(1), [] as [&str; 0], "the visitor is served, not waiting");
    a.scene.say(&visitor("u1"), 1, session, "k").await;
    idle().await;
    assert_eq!(b.messages(10), [1], "M2");
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_comes_late_takes_nothing_from_who_got_the_session_back() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let (session, _, _) = transferred(&a, &b, &c).await;
    let there = b.scene.session(session).await.version;
    c.scene.transfer(&agent("a2"), session, "a1").await;
    idle().await;
    clear(&[&a, &b, &c]);
    let late = Event::SessionAssigned {
        session_id: session,
        user_id: user("u1", 0).user_id,
        admin_id: admin("a2"),
        from: Some(admin("a1")),
        how: How::Transfer,
        actor: Actor::Agent(admin("a1")),
        version: there,
    };
    house.say(&b, late.clone(), None).await;
    house.say(&c, late, None).await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "A3: it is theirs again");
    assert_eq!(c.scene.kinds(20), [] as [&str; 0], "A3: it is no longer theirs");
}

#[tokio::test(start_paused = true)]
async fn an_assignment_that_comes_after_the_end_is_not_told() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let version = a.scene.session(session).await.version;
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    clear(&[&a, &b]);
    let late = Event::SessionAssigned {
        session_id: session,
        user_id: user("u1", 0).user_id,
        admin_id: admin("a1"),
        from: None,
        how: How::Drain,
        actor: Actor::System,
        version,
    };
    house.say(&b, late, None).await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "S2: ended is terminal");
}

#[tokio::test(start_paused = true)]
async fn what_comes_twice_is_told_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    a.scene.acknowledge(&agent("a1"), &message).await;
    idle().await;
    b.clear();
    let version = a.scene.session(session).await.version;
    let event = stored(&message, &admin("a1"), version);
    let envelope = house.say(&b, event, Some(Arc::clone(&message))).await;
    house.repeat(&b, &envelope, Some(message)).await;
    assert_eq!(b.messages(10), [1], "N2: by event id");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_came_with_the_session_is_not_pushed_again_by_its_own_word() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = a.scene.consult("u1", 1).await.session_id.expect("open");
    b.scene.consult("u1", 2).await;
    // Stored by a node that is slow to say so, and assigned meanwhile.
    a.mute.0.store(true, Ordering::SeqCst);
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    b.scene.agent("a1", 10, 5).await;
    idle().await;
    assert_eq!(b.messages(10), [1], "2.7: with the session");
    let version = a.scene.session(session).await.version;
    house.say(&b, stored(&message, &admin("a1"), version), Some(message)).await;
    assert_eq!(b.messages(10), [1], "never a second copy");
    assert_eq!(b.count(2, "own message"), 1, "M2: the sender's other device");
}

#[tokio::test(start_paused = true)]
async fn a_message_of_another_node_does_not_overtake_a_transfer_of_this_one() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    b.scene.agent("a2", 20, 5).await;
    idle().await;
    b.clear();
    b.scene.people.lag("message", Duration::from_millis(50));
    // The message is being told by the ear, the transfer by the desk's own fan-out.
    a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(0.01).await;
    b.scene.transfer(&agent("a1"), session, "a2").await;
    pass(0.3).await;
    let told = b.scene.kinds(10);
    assert_eq!(told, ["message", "session_removed"], "A3: nothing after it was taken away");
    assert_eq!(b.scene.kinds(20)[..2], ["session_new", "message"], "2.7");
}

#[tokio::test(start_paused = true)]
async fn a_push_of_another_node_does_not_overtake_a_transfer_of_this_one() {
    for name in ["typing", "peer_ack", "read"] {
        let house = House::build();
        let (a, b) = (house.node("a").await, house.node("b").await);
        let session_id = talking(&a, &b).await;
        let message = b.scene.say(&agent("a1"), 10, session_id, "k").await;
        b.scene.agent("a2", 20, 5).await;
        idle().await;
        b.clear();
        let (msg_id, seq, status) = (message.msg_id, message.seq, MessageStatus::Delivered);
        let push = match name {
            "typing" => Relayed::Typing { session_id, is_typing: true },
            "peer_ack" => Relayed::PeerAck { session_id, msg_id, seq, status },
            _ => Relayed::Read { session_id, seq },
        };
        b.scene.people.lag(name, Duration::from_millis(50));
        // Its check is done and it is on its way, while the session is handed on here.
        let word = NodeMessage::Push { to: agent("a1").person(), push, trace_id: None };
        let to = BTreeSet::from([b.scene.node.clone()]);
        house.wire.node(named("elsewhere")).send(&to, &word).await.expect("whole");
        pass(0.01).await;
        b.scene.transfer(&agent("a1"), session_id, "a2").await;
        pass(0.3).await;
        assert_eq!(b.scene.kinds(10), [name, "session_removed"], "A3: nothing after it");
    }
}

#[tokio::test(start_paused = true)]
async fn typing_and_acks_said_before_their_node_heard_of_the_transfer_reach_no_former_owner() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let (session, message, _) = transferred(&a, &b, &c).await;
    clear(&[&a, &b, &c]);
    let (msg_id, seq, status) = (message.msg_id, message.seq, MessageStatus::Read);
    let pushes = [
        Relayed::Typing { session_id: session, is_typing: true },
        Relayed::PeerAck { session_id: session, msg_id, seq, status },
    ];
    for push in pushes {
        for (node, id) in [(&b, "a1"), (&c, "a2")] {
            let (to, push) = (agent(id).person(), push.clone());
            let word = NodeMessage::Push { to, push, trace_id: None };
            let to = BTreeSet::from([node.scene.node.clone()]);
            house.wire.node(named("elsewhere")).send(&to, &word).await.expect("whole");
        }
    }
    idle().await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "A3");
    assert_eq!(c.scene.kinds(20), ["typing", "peer_ack"], "M2: the owner");
}
