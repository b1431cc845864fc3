//! `PresenceStore`: leases of connections, in virtual time (P1, L2).

use std::collections::BTreeSet;
use std::time::Duration;

use kefu_core::{AdminId, ConnId, NodeName, Person, UserId};
use kefu_presence::Lease;

use crate::{CoordinationHarness, race};

const TTL: Duration = Duration::from_secs(60);

/// Leases are counted per person; a user and an agent of one name are two persons.
pub async fn leases_are_counted_per_person<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let (user, agent) = (user("x"), Person::Agent(AdminId::new("x").unwrap()));
    assert_eq!(presence.count(&user).await.unwrap(), 0);
    assert_eq!(presence.acquire(&user, &lease("n1", 1), TTL, 10).await.unwrap(), Some(1));
    assert_eq!(presence.acquire(&user, &lease("n1", 2), TTL, 10).await.unwrap(), Some(2));
    assert_eq!(presence.acquire(&user, &lease("n2", 1), TTL, 10).await.unwrap(), Some(3));
    assert_eq!(presence.count(&user).await.unwrap(), 3);
    assert_eq!(presence.count(&agent).await.unwrap(), 0);
}

/// N1: a person is where a lease of theirs lives; an expired or released one leads nowhere.
pub async fn a_person_is_on_the_nodes_of_their_leases<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let (here, away) = (user("here"), user("away"));
    let on = |names: &[&str]| -> BTreeSet<NodeName> {
        names.iter().map(|name| NodeName::new(*name).unwrap()).collect()
    };
    presence.acquire(&here, &lease("n1", 1), TTL / 2, 10).await.unwrap();
    presence.acquire(&here, &lease("n2", 2), TTL, 10).await.unwrap();
    presence.acquire(&here, &lease("n2", 3), TTL, 10).await.unwrap();
    let people = [here.clone(), away];
    let nodes = presence.list_nodes(&people).await.unwrap();
    assert_eq!(nodes, [on(&["n1", "n2"]), on(&[])]);
    harness.advance(TTL / 2 + Duration::from_secs(1)).await;
    assert_eq!(presence.list_nodes(&people).await.unwrap(), [on(&["n2"]), on(&[])]);
    for conn in [2, 3] {
        presence.release(&here, &lease("n2", conn)).await.unwrap();
    }
    assert_eq!(presence.list_nodes(&people).await.unwrap(), [on(&[]), on(&[])]);
}

/// P1: alive at 59 s, gone at 61 s, swept or not.
pub async fn a_lease_dies_after_its_ttl<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    presence.acquire(&user, &lease("n1", 1), TTL, 10).await.unwrap();
    harness.advance(Duration::from_secs(59)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 1);
    harness.advance(Duration::from_secs(2)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 0);
    assert_eq!(presence.release(&user, &lease("n1", 1)).await.unwrap(), 0);
}

/// A renewed lease lives for its ttl from then; the others do not live longer for it.
pub async fn renewing_extends_one_lease<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    presence.acquire(&user, &lease("n1", 1), TTL, 10).await.unwrap();
    presence.acquire(&user, &lease("n1", 2), TTL, 10).await.unwrap();
    harness.advance(Duration::from_secs(40)).await;
    presence.renew(&user, &lease("n1", 1), TTL).await.unwrap();
    harness.advance(Duration::from_secs(40)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 1);
    harness.advance(Duration::from_secs(21)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 0);
}

/// The connection itself is the proof: renewing brings an expired lease back.
pub async fn renewing_recreates_an_expired_lease<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    presence.acquire(&user, &lease("n1", 1), TTL, 10).await.unwrap();
    harness.advance(Duration::from_secs(300)).await;
    presence.renew(&user, &lease("n1", 1), TTL).await.unwrap();
    assert_eq!(presence.count(&user).await.unwrap(), 1);
    presence.renew(&user, &lease("n1", 2), TTL).await.unwrap();
    assert_eq!(presence.count(&user).await.unwrap(), 2);
}

/// Each lease has a ttl of its own.
pub async fn ttls_are_independent<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    presence.acquire(&user, &lease("n1", 1), Duration::from_secs(10), 10).await.unwrap();
    presence.acquire(&user, &lease("n1", 2), Duration::from_secs(100), 10).await.unwrap();
    harness.advance(Duration::from_secs(11)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 1);
    assert_eq!(presence.release(&user, &lease("n1", 1)).await.unwrap(), 1);
    assert_eq!(presence.release(&user, &lease("n1", 2)).await.unwrap(), 0);
}

/// Releasing again, or what was never held, changes nothing.
pub async fn releasing_is_idempotent<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    for conn in 1..=3 {
        presence.acquire(&user, &lease("n1", conn), TTL, 10).await.unwrap();
    }
    assert_eq!(presence.release(&user, &lease("n1", 1)).await.unwrap(), 2);
    assert_eq!(presence.release(&user, &lease("n1", 1)).await.unwrap(), 2);
    assert_eq!(presence.release(&user, &lease("n2", 2)).await.unwrap(), 2);
    assert_eq!(presence.count(&user).await.unwrap(), 2);
}

/// L2: what would exceed the limit is refused and leaves nothing; a held lease is renewed at the limit.
pub async fn the_limit_is_kept<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    assert_eq!(presence.acquire(&user, &lease("n1", 1), TTL, 2).await.unwrap(), Some(1));
    assert_eq!(presence.acquire(&user, &lease("n1", 2), TTL, 2).await.unwrap(), Some(2));
    assert_eq!(presence.acquire(&user, &lease("n1", 3), TTL, 2).await.unwrap(), None);
    assert_eq!(presence.count(&user).await.unwrap(), 2);
    harness.advance(Duration::from_secs(40)).await;
    assert_eq!(presence.acquire(&user, &lease("n1", 1), TTL, 2).await.unwrap(), Some(2));
    harness.advance(Duration::from_secs(40)).await;
    assert_eq!(presence.count(&user).await.unwrap(), 1, "acquiring it again renewed it");
    assert_eq!(
        presence.acquire(&user, &lease("n1", 3), TTL, 2).await.unwrap(),
        Some(2),
        "an expired lease takes no room"
    );
}

/// L2: fifty at once under a limit of ten: ten get in, each with a count of its own.
pub async fn the_limit_holds_at_once<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let answers = race(50, |n| {
        let presence = std::sync::Arc::clone(&presence);
        async move {
            let lease = lease("n1", n as u64);
            presence.acquire(&user("u1"), &lease, TTL, 10).await.unwrap()
        }
    })
    .await;
    let counts: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!(counts.len(), 10);
    assert_eq!(counts.into_iter().collect::<BTreeSet<_>>(), (1..=10).collect());
    assert_eq!(presence.count(&user("u1")).await.unwrap(), 10);
}

/// L2: a process that was killed leaves its leases until they expire; they keep nobody out elsewhere,
/// and count towards where the person is all the same.
pub async fn leases_on_other_nodes_take_no_room<H: CoordinationHarness>() {
    let harness = H::start().await;
    let presence = harness.coordination().presence;
    let user = user("u1");
    for conn in 1..=2 {
        presence.acquire(&user, &lease("n1", conn), TTL, 2).await.unwrap();
    }
    // A name that begins as the other one does.
    assert_eq!(presence.acquire(&user, &lease("n", 1), TTL, 2).await.unwrap(), Some(3));
    assert_eq!(presence.acquire(&user, &lease("n", 2), TTL, 2).await.unwrap(), Some(4));
    assert_eq!(presence.acquire(&user, &lease("n", 3), TTL, 2).await.unwrap(), None);
    assert_eq!(presence.acquire(&user, &lease("n1", 3), TTL, 2).await.unwrap(), None);
    assert_eq!(presence.count(&user).await.unwrap(), 4);
}

fn user(id: &str) -> Person {
    Person::User(UserId::new(id).unwrap())
}

fn lease(node: &str, conn: u64) -> Lease {
    Lease { node: NodeName::new(node).unwrap(), conn: ConnId(conn) }
}
