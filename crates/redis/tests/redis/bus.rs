//! The wire between nodes: order, addresses, no echo, and a gap after every possible loss (N1, N3).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fred::prelude::{Client, PubsubInterface};
use futures_util::future::try_join_all;
use kefu_core::{NodeName, Person, SessionId, StoreFault, UserId};
use kefu_desk::{Heard, NodeBus, NodeMessage, Relayed};
use kefu_testkit::server::redis::RedisServer;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::faults::place;
use crate::harness::{Kind, Node, Place, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_is_heard_in_order_by_whom_it_is_for() {
    for kind in Kind::BOTH {
        let place = Place::new(kind);
        let nodes =
            [start(&place, "n1").await, start(&place, "n2").await, start(&place, "n3").await];
        let [(n1, mut at1), (n2, mut at2), (_n3, mut at3)] = nodes;
        let (one, two) = (n1.coordination.nodes(), n2.coordination.nodes());
        for n in 0..300 {
            match n % 3 {
                0 => one.broadcast(&word(n)).await.unwrap(),
                1 => one.send(&names(&["n2"]), &word(n)).await.unwrap(),
                _ => one.send(&names(&["n1", "n2", "n3"]), &word(n)).await.unwrap(),
            }
        }
        two.broadcast(&word(1_000)).await.unwrap();
        for n in 0..300 {
            assert_eq!(next(&mut at2).await, Heard::Message(word(n)));
        }
        let mut third: Vec<_> = (0..300).filter(|n| n % 3 != 1).chain([1_000]).map(said).collect();
        let mut heard = Vec::new();
        while heard.len() < third.len() {
            heard.push(next(&mut at3).await);
        }
        // What another node says may come anywhere between.
        heard.sort_by_key(|heard| position(heard) == Some(1_000));
        third.sort_by_key(|heard| position(heard) == Some(1_000));
        assert_eq!(heard, third);
        assert_eq!(next(&mut at1).await, said(1_000), "nobody hears themselves");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_redis_a_gap_comes_before_what_is_said_later() {
    let mut server = RedisServer::start();
    let (n1, _at1) = start(&place(&server), "n1").await;
    let (_n2, mut at2) = start(&place(&server), "n2").await;
    let nodes = n1.coordination.nodes();
    nodes.broadcast(&word(1)).await.unwrap();
    assert_eq!(next(&mut at2).await, said(1));
    server.kill();
    until("fails", || async { nodes.broadcast(&word(2)).await.is_err() }).await;
    server.restart();
    assert_eq!(next(&mut at2).await, Heard::Gap);
    until("heals", || async { nodes.broadcast(&word(3)).await.is_ok() }).await;
    assert_eq!(after_gaps(&mut at2).await, said(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_is_a_gap() {
    let server = RedisServer::start();
    let (n1, _at1) = start(&place(&server), "n1").await;
    let (_n2, mut at2) = start(&place(&server), "n2").await;
    server.cut_clients();
    assert_eq!(next(&mut at2).await, Heard::Gap);
    let nodes = n1.coordination.nodes();
    until("heals", || async { nodes.broadcast(&word(1)).await.is_ok() }).await;
    assert_eq!(after_gaps(&mut at2).await, said(1));
}

/// The others cannot know what a node failed to say, so it says that it failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_said_is_a_gap_for_the_others() {
    let server = RedisServer::start();
    let (n1, _at1) = start(&place(&server), "n1").await;
    let (_n2, mut at2) = start(&place(&server), "n2").await;
    let nodes = n1.coordination.nodes();
    server.freeze();
    let answer = nodes.send(&names(&["n2"]), &word(1)).await;
    assert!(matches!(answer, Err(StoreFault::Unavailable { .. })));
    server.thaw();
    until("heals", || async { nodes.send(&names(&["n2"]), &word(2)).await.is_ok() }).await;
    let mut heard = Vec::new();
    while heard.last() != Some(&said(2)) {
        heard.push(next(&mut at2).await);
    }
    assert!(heard.contains(&Heard::Gap), "{heard:?}");
}

/// A subscriber that does not keep up misses messages and hears of it; what comes is in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_subscriber_hears_a_gap() {
    const SAID: i64 = 12_000;
    let place = Place::new(Kind::Plain);
    let (n1, _at1) = start(&place, "n1").await;
    let (_n2, mut at2) = start(&place, "n2").await;
    let (_n3, mut at3) = start(&place, "n3").await;
    let nodes = n1.coordination.nodes();
    let to = names(&["n2"]);
    let all: Vec<_> = (1..=SAID).map(word).collect();
    for some in all.chunks(500) {
        try_join_all(some.iter().map(|word| nodes.send(&to, word))).await.unwrap();
    }
    nodes.broadcast(&word(SAID + 1)).await.unwrap();
    assert_eq!(next(&mut at3).await, said(SAID + 1));
    let (mut last, mut gaps) = (0, 0);
    while last <= SAID {
        match position(&next(&mut at2).await) {
            Some(n) if n == last + 1 => last = n,
            Some(n) => {
                assert!(n > last && gaps > 0, "{n} after {last} without a gap");
                last = n;
            }
            None => gaps += 1,
        }
    }
    assert!(gaps > 0, "all {SAID} fitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_other_versions_are_skipped() {
    let place = Place::new(Kind::Plain);
    let (n1, _at1) = start(&place, "n1").await;
    let (_n2, mut at2) = start(&place, "n2").await;
    let admin = place.admin().await;
    let newer = r#"{"schemaVersion":99,"from":"n9","body":{"dream":{}}}"#;
    for words in [newer, "noise", ""] {
        publish(&admin, place.key("channel.customer.message"), words).await;
        publish(&admin, place.key("channel.customer.message:n2"), words).await;
    }
    n1.coordination.nodes().broadcast(&word(1)).await.unwrap();
    assert_eq!(next(&mut at2).await, said(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_subscribing_waits_briefly_and_begins_with_a_gap() {
    let mut server = RedisServer::start();
    server.kill();
    let (n1, _at1) = start(&place(&server), "n1").await;
    let (_n2, mut at2) = start(&place(&server), "n2").await;
    server.restart();
    assert_eq!(next(&mut at2).await, Heard::Gap);
    let nodes = n1.coordination.nodes();
    until("says", || async { nodes.broadcast(&word(1)).await.is_ok() }).await;
    assert_eq!(after_gaps(&mut at2).await, said(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_ends_with_its_reader() {
    let place = Place::new(Kind::Plain);
    let admin = place.admin().await;
    let (node, heard) = start(&place, "n1").await;
    let listeners = || async {
        let channel = place.key("channel.customer.message:n1");
        let counts: Vec<(String, i64)> = admin.pubsub_numsub(channel).await.unwrap();
        counts.iter().map(|(_, count)| count).sum::<i64>()
    };
    assert_eq!(listeners().await, 1);
    drop(heard);
    until("unsubscribes", || async { listeners().await == 0 }).await;
    drop(node);
}

async fn start(place: &Place, name: &str) -> (Node, Receiver<Heard>) {
    let node = Node::start(place, name).await;
    let bus: Arc<dyn NodeBus> = node.coordination.nodes();
    let heard = bus.subscribe().await;
    (node, heard)
}

async fn publish(admin: &Client, channel: String, text: &str) {
    let () = admin.publish(channel, text).await.unwrap();
}

async fn next(heard: &mut Receiver<Heard>) -> Heard {
    let next = timeout(Duration::from_secs(30), heard.recv()).await;
    next.expect("something is heard").expect("still listening")
}

async fn after_gaps(heard: &mut Receiver<Heard>) -> Heard {
    loop {
        let next = next(heard).await;
        if next != Heard::Gap {
            return next;
        }
    }
}

fn names(all: &[&str]) -> BTreeSet<NodeName> {
    all.iter().map(|name| NodeName::new(*name).unwrap()).collect()
}

fn word(n: i64) -> NodeMessage {
    let session_id = SessionId::new(n + 1).unwrap();
    let to = Person::User(UserId::new("u1").unwrap());
    let push = Relayed::Typing { session_id, is_typing: true };
    NodeMessage::Push { to, push, trace_id: None }
}

fn said(n: i64) -> Heard {
    Heard::Message(word(n))
}

fn position(heard: &Heard) -> Option<i64> {
    match heard {
        Heard::Message(NodeMessage::Push { push: Relayed::Typing { session_id, .. }, .. }) => {
            Some(session_id.get() - 1)
        }
        Heard::Message(_) | Heard::Gap => None,
    }
}
