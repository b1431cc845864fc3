//! A node that dies: what it did not tell, and whose leases it held (N2, P4, Z7).

use std::time::Duration;

use kefu_core::{ConnId, Person};
use kefu_desk::{Heard, NodeMessage};
use kefu_presence::Availability;
use kefu_session::Status;
use kefu_testkit::build::{admin, trace, user};
use tokio::sync::mpsc;

use super::{House, clear, talking};
use crate::common::{NOWHERE, agent, idle, pass, visitor};

/// How often each event was said to everybody.
fn said(heard: &mut mpsc::Receiver<Heard>) -> Vec<usize> {
    let mut times = std::collections::BTreeMap::<_, usize>::new();
    while let Ok(word) = heard.try_recv() {
        if let Heard::Message(NodeMessage::Event { envelope, .. }) = word {
            *times.entry(envelope.id).or_default() += 1;
        }
    }
    times.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_node_committed_and_did_not_tell_is_told_by_the_relay() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let (c, _drainer) = (house.node("c").await, house.drainer("d").await);
    let session = talking(&a, &b).await;
    let second = a.scene.consult("u2", 2).await.session_id.expect("open");
    idle().await;
    clear(&[&a, &b, &c]);
    // Between commit and telling: the events are stopped before any handler sees them.
    c.mute.0.store(true, std::sync::atomic::Ordering::SeqCst);
    c.scene.resume("u1", 3).await;
    c.scene.say(&visitor("u1"), 3, session, "k").await;
    c.scene.desk.end(&visitor("u2"), second, NOWHERE, &trace()).await.expect("ended");
    c.dies(&house).await;
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "nobody was told");
    pass(3.1).await;
    assert_eq!(b.messages(10).first(), Some(&1), "N2: within about three seconds");
    assert_eq!(a.scene.kinds(1), ["own message"], "M2: the sender's other device");
    assert_eq!((b.count(10, "ended"), a.count(2, "ended")), (1, 1), "N2");
    pass(60.0).await;
    assert_eq!((b.count(10, "ended"), a.count(2, "ended")), (1, 1), "N2: once");
    assert_eq!(a.scene.kinds(1).iter().filter(|kind| **kind == "own message").count(), 1, "N2");
    let rest = house.stores.outbox.list_unconfirmed(house.clock.now(), None, 10).await;
    assert_eq!(rest.expect("readable"), [], "N2: done");
}

#[tokio::test(start_paused = true)]
async fn a_live_nodes_own_events_are_said_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let _drainer = house.drainer("d").await;
    let mut heard = house.eavesdrop().await;
    for n in 0..20 {
        let session = talking_as(&a, &b, n).await;
        pass(0.7).await;
        a.scene
            .desk
            .end(&visitor(&format!("u{n}")), session, NOWHERE, &trace())
            .await
            .expect("ended");
    }
    pass(10.0).await;
    let said = said(&mut heard);
    assert!(said.len() >= 60, "opened, assigned, ended, and the agent's load");
    assert!(said.iter().all(|times| *times == 1), "N2: the relay leaves them alone: {said:?}");
}

async fn talking_as(a: &super::Node, b: &super::Node, n: u64) -> kefu_core::SessionId {
    b.scene.agent("a1", 10, 5).await;
    let answer = a.scene.consult(&format!("u{n}"), 100 + n).await;
    idle().await;
    answer.session_id.expect("open")
}

#[tokio::test(start_paused = true)]
async fn what_node_and_relay_both_say_is_told_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let before = house.clock.now();
    pass(1.0).await;
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(1.0).await;
    // The relay's word, to both: it cannot know that it was heard already.
    let after = kefu_core::snowflake::floor_of(before);
    let rows = house.stores.outbox.list_changes(after, 50).await.expect("readable");
    for envelope in &rows {
        house.repeat(&a, envelope, None).await;
        house.repeat(&b, envelope, None).await;
    }
    assert_eq!(b.count(10, "ended"), 1, "N2: on another node");
    assert_eq!(a.count(1, "ended"), 1, "N2: on the node that decided");
    assert_eq!(a.count(1, "assigned"), 1, "N2");
}

#[tokio::test(start_paused = true)]
async fn without_its_own_wire_the_relay_keeps_what_it_could_not_say() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let (c, drainer) = (house.node("c").await, house.drainer("d").await);
    drainer.desk.start_node(&drainer.tracker, &drainer.stop);
    let session = talking(&a, &b).await;
    c.mute.0.store(true, std::sync::atomic::Ordering::SeqCst);
    c.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    c.dies(&house).await;
    house.wire.cut(&drainer.node);
    pass(5.0).await;
    assert_eq!(b.count(10, "ended"), 0);
    house.wire.mend(&drainer.node);
    pass(3.0).await;
    assert_eq!(b.count(10, "ended"), 1, "N2: nobody else had a gap to read it again for");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_node_died_is_gone_after_the_lease_and_requeued_after_the_grace() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let _drainer = house.drainer("d").await;
    a.scene.stay(&visitor("u0"), 9, 100).await;
    let session = talking(&a, &b).await;
    b.dies(&house).await;
    a.scene.stay(&visitor("u1"), 1, 59).await;
    assert!(a.scene.agent_row("a1").await.live, "P1: 59 s");
    a.scene.stay(&visitor("u1"), 1, 3).await;
    assert!(!a.scene.agent_row("a1").await.live, "P4: by the drainer");
    a.scene.stay(&visitor("u1"), 1, 117).await;
    assert!(a.scene.session(session).await.is_owned_by(&admin("a1")), "Z7: within the grace");
    a.scene.stay(&visitor("u1"), 1, 5).await;
    assert_eq!(a.scene.session(session).await.status, Status::Waiting, "Z7");
    assert_eq!(a.count(1, "requeued"), 1, "Z7: told on the visitor's node");
    let row = a.scene.agent_row("a1").await;
    assert_eq!((row.availability, row.active_sessions), (Availability::Offline, 0), "Z7");
}

#[tokio::test(start_paused = true)]
async fn leases_lost_at_once_are_given_back_and_nobody_is_judged_for_a_ttl() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let _drainer = house.drainer("d").await;
    let session = talking(&a, &b).await;
    c.scene.agent("a2", 20, 5).await;
    let renew = async || {
        a.scene.desk.renew(&visitor("u1").person(), ConnId(1)).await;
        b.scene.desk.renew(&agent("a1").person(), ConnId(10)).await;
    };
    for _ in 0..100 {
        pass(1.0).await;
        renew().await;
        c.scene.desk.renew(&agent("a2").person(), ConnId(20)).await;
    }
    // A node that will not come back, and right after it everybody's leases.
    c.dies(&house).await;
    house.coordination.lose_leases();
    pass(1.1).await;
    let presence = house.coordination.ports().presence;
    let count = async |person: &Person| presence.count(person).await.expect("memory");
    assert_eq!(count(&agent("a1").person()).await, 1, "P4: at once");
    assert_eq!(count(&Person::User(user("u1", 0).user_id)).await, 1, "P4: visitors too");
    assert_eq!(count(&agent("a2").person()).await, 0);
    for _ in 0..57 {
        pass(1.0).await;
        renew().await;
        let live = (a.scene.agent_row("a1").await.live, a.scene.agent_row("a2").await.live);
        assert_eq!(live, (true, true), "P4: nobody is judged");
    }
    for _ in 0..4 {
        pass(1.0).await;
        renew().await;
    }
    let live = (a.scene.agent_row("a1").await.live, a.scene.agent_row("a2").await.live);
    assert_eq!(live, (true, false), "P4: after one ttl");
    assert!(a.scene.session(session).await.is_owned_by(&admin("a1")), "Z7");
    assert!(presence.age().await.expect("memory") > Duration::from_secs(60));
}
