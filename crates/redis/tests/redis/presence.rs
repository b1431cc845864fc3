//! What the keys of presence say to others that look (semantics.md, "Presence"; P4).

use std::time::Duration;

use fred::prelude::{Client, KeysInterface};
use kefu_core::{AdminId, ConnId, NodeName, Person, UserId};
use kefu_presence::Lease;

use crate::harness::{Kind, Node, Place};

const TTL: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_latest_connection_is_named_and_when_it_closes_the_next() {
    for kind in Kind::BOTH {
        let place = Place::new(kind);
        let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
        let presence = node.coordination.ports().presence;
        let user = Person::User(UserId::new("u1").unwrap());
        let latest = place.key("conn:user:u1");
        presence.acquire(&user, &lease(1), TTL, 10).await.unwrap();
        presence.acquire(&user, &lease(2), TTL, 10).await.unwrap();
        assert_eq!(text(&admin, &latest).await.as_deref(), Some("n1:2"));
        presence.renew(&user, &lease(1), TTL).await.unwrap();
        assert_eq!(text(&admin, &latest).await.as_deref(), Some("n1:2"), "still the latest");
        presence.release(&user, &lease(2)).await.unwrap();
        assert_eq!(text(&admin, &latest).await.as_deref(), Some("n1:1"));
        assert!(life(&admin, &latest).await <= TTL);
        presence.release(&user, &lease(1)).await.unwrap();
        assert_eq!(text(&admin, &latest).await, None, "goes with the last");
        assert_eq!(text(&admin, &place.key("online:agent:u1")).await, None);
    }
}

#[tokio::test]
async fn an_agent_is_online_while_a_connection_is() {
    let place = Place::new(Kind::Plain);
    let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
    let presence = node.coordination.ports().presence;
    let agent = Person::Agent(AdminId::new("a1").unwrap());
    let online = place.key("online:agent:a1");
    presence.acquire(&agent, &lease(1), TTL, 10).await.unwrap();
    assert_eq!(text(&admin, &online).await.as_deref(), Some("online"));
    assert!(life(&admin, &online).await <= TTL);
    node.pass(Duration::from_secs(50));
    presence.renew(&agent, &lease(1), TTL).await.unwrap();
    node.pass(Duration::from_secs(50));
    assert!(text(&admin, &online).await.is_some(), "renewed by heartbeats");
    presence.release(&agent, &lease(1)).await.unwrap();
    assert_eq!(text(&admin, &online).await, None);
}

#[tokio::test]
async fn nothing_of_a_vanished_person_stays() {
    let place = Place::new(Kind::Plain);
    let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
    let presence = node.coordination.ports().presence;
    let agent = Person::Agent(AdminId::new("a1").unwrap());
    presence.acquire(&agent, &lease(1), TTL, 10).await.unwrap();
    presence.acquire(&agent, &lease(2), TTL * 2, 10).await.unwrap();
    node.pass(TTL * 2 + Duration::from_secs(1));
    for key in ["conns:agent:a1", "conn:agent:a1", "online:agent:a1"] {
        let stays: bool = admin.exists(place.key(key)).await.unwrap();
        assert!(!stays, "{key}");
    }
}

/// P4: leases that no node could renew say nothing about their people.
#[tokio::test]
async fn a_silence_of_all_nodes_makes_the_age_start_anew() {
    let place = Place::new(Kind::Plain);
    let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
    let presence = node.coordination.ports().presence;
    let user = Person::User(UserId::new("u1").unwrap());
    presence.acquire(&user, &lease(1), TTL, 10).await.unwrap();
    node.pass(Duration::from_secs(300));
    assert!(presence.age().await.unwrap() >= Duration::from_secs(300));
    let since = place.key("presence:since");
    assert!(life(&admin, &since).await <= Duration::from_secs(20));
    let _: bool = admin.pexpire(&since, 1, None).await.unwrap();
    crate::harness::until("silence", || async { text(&admin, &since).await.is_none() }).await;
    presence.renew(&user, &lease(1), TTL).await.unwrap();
    assert!(presence.age().await.unwrap() < Duration::from_secs(30));
}

fn lease(conn: u64) -> Lease {
    Lease { node: NodeName::new("n1").unwrap(), conn: ConnId(conn) }
}

async fn text(admin: &Client, key: &str) -> Option<String> {
    admin.get(key).await.unwrap()
}

/// How long a key still lives; keys of presence all end by themselves.
async fn life(admin: &Client, key: &str) -> Duration {
    let left: i64 = admin.pttl(key).await.unwrap();
    Duration::from_millis(u64::try_from(left).expect("has an end"))
}
