//! Redis killed, frozen, emptied, or not there at all: calls fail at once and heal by themselves (N5).

use std::time::Duration;

use fred::prelude::{Client, ClientLike};
use fred::types::InfoKind;
use kefu_core::{ConnId, NodeName, Person, StoreFault, UserId};
use kefu_presence::Lease;
use kefu_redis::{ConnectError, RedisCoordination, RedisOptions};
use kefu_testkit::race;
use kefu_testkit::server::redis::RedisServer;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::harness::{Node, Place, until};

const TTL: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_calls_fail_at_once_and_heal() {
    let mut server = RedisServer::start();
    let node = Node::start(&place(&server), "n1").await;
    let presence = node.coordination.ports().presence;
    presence.acquire(&user(), &lease(1), TTL, 10).await.unwrap();

    server.kill();
    until("notices the loss", || async { !node.coordination.is_connected() }).await;
    let begin = Instant::now();
    let answers = race(500, |n| {
        let presence = presence.clone();
        async move { presence.renew(&user(), &lease(n as u64), TTL).await }
    })
    .await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    // Far below the time limit of one command: nobody waited in a row.
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());

    server.restart();
    until("heals", || async { presence.renew(&user(), &lease(1), TTL).await.is_ok() }).await;
    assert_eq!(presence.count(&user()).await, Ok(1), "the scripts were taught again");
    let lock = node.coordination.ports().assign_lock;
    let user = UserId::new("u1").unwrap();
    assert!(lock.try_acquire(&user, TTL).await.unwrap().is_some());
}

/// Whatever is under way when Redis dies ends within the time limit, one way or the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_the_moment_of_death_end() {
    let mut server = RedisServer::start();
    let node = Node::start(&place(&server), "n1").await;
    let presence = node.coordination.ports().presence;
    presence.count(&user()).await.unwrap();
    let calls = race(2_000, |n| {
        let presence = presence.clone();
        async move { presence.renew(&user(), &lease(n as u64), TTL).await }
    });
    let (answers, ()) = tokio::join!(timeout(Duration::from_secs(10), calls), async {
        server.kill();
    });
    let failed = answers.expect("all end").into_iter().filter(Result::is_err);
    for answer in failed {
        assert!(is_unavailable(&answer), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_redis_is_given_up_and_found_again() {
    let server = RedisServer::start();
    let node = Node::start(&place(&server), "n1").await;
    let presence = node.coordination.ports().presence;
    presence.acquire(&user(), &lease(1), TTL, 10).await.unwrap();
    server.freeze();
    let begin = Instant::now();
    assert!(is_unavailable(&presence.count(&user()).await));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    until("gives it up", || async {
        let _ = presence.count(&user()).await;
        !node.coordination.is_connected()
    })
    .await;
    server.thaw();
    until("finds it again", || async { presence.count(&user()).await == Ok(1) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_starts_without_redis() {
    let mut server = RedisServer::start();
    server.kill();
    let node = Node::start(&place(&server), "n1").await;
    let presence = node.coordination.ports().presence;
    assert!(!node.coordination.is_connected());
    assert!(is_unavailable(&presence.count(&user()).await));
    server.restart();
    until("connects", || async { presence.count(&user()).await.is_ok() }).await;
    until("says so", || async { node.coordination.is_connected() }).await;
}

/// P4: an emptied Redis knows nobody, and says how young it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_flushall_the_age_starts_anew_and_heartbeats_bring_leases_back() {
    let server = RedisServer::start();
    let node = Node::start(&place(&server), "n1").await;
    let presence = node.coordination.ports().presence;
    presence.acquire(&user(), &lease(1), TTL, 10).await.unwrap();
    presence.age().await.unwrap();
    node.pass(Duration::from_secs(3_600));
    assert!(presence.age().await.unwrap() >= Duration::from_secs(3_600));
    server.flush();
    assert_eq!(presence.count(&user()).await, Ok(0));
    presence.renew(&user(), &lease(1), TTL).await.unwrap();
    assert_eq!(presence.count(&user()).await, Ok(1));
    assert!(presence.age().await.unwrap() < Duration::from_secs(60));
}

/// L3: stopping ends every task and every connection, whether Redis is there or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_leaves_nothing_behind() {
    for is_there in [true, false] {
        let mut server = RedisServer::start();
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let options = RedisOptions::new(server.url(), NodeName::new("n1").unwrap());
        let node = RedisCoordination::connect(options, &tracker, stop.clone()).await.unwrap();
        let mut heard = node.nodes().subscribe().await;
        if !is_there {
            server.kill();
            until("notices the loss", || async { !node.is_connected() }).await;
        }
        stop.cancel();
        tracker.close();
        timeout(Duration::from_secs(5), tracker.wait()).await.expect("all tasks end");
        assert_eq!(heard.recv().await, None);
        if !is_there {
            server.restart();
        }
        let admin = place(&server).admin().await;
        until("no connection", || async { connections(&admin).await == 1 }).await;
        assert!(is_unavailable(&node.ports().presence.count(&user()).await));
    }
}

/// How many clients the server has, the asking one included.
async fn connections(admin: &Client) -> usize {
    let info: String = admin.info(Some(InfoKind::Clients)).await.unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    count.expect("redis says so").trim().parse().unwrap()
}

#[tokio::test]
async fn settings_that_can_never_work_are_refused() {
    let connect = |url: &str, prefix: &str, connections: usize| {
        let options = RedisOptions {
            key_prefix: prefix.to_owned(),
            connections,
            ..RedisOptions::new(url, NodeName::new("n1").unwrap())
        };
        async move {
            let stop = CancellationToken::new();
            RedisCoordination::connect(options, &TaskTracker::new(), stop).await.err()
        }
    };
    for url in ["", "localhost", "http://x", "rediss://localhost:1", "redis://"] {
        assert!(matches!(connect(url, "cs", 1).await, Some(ConnectError::Url)), "{url}");
    }
    let cluster = connect("redis-cluster://127.0.0.1:1", "cs", 1).await;
    assert!(matches!(cluster, Some(ConnectError::PrefixWithoutHashTag)));
    let none = connect("redis://127.0.0.1:1", "cs", 0).await;
    assert!(matches!(none, Some(ConnectError::NoConnections)));
}

pub(crate) fn place(server: &RedisServer) -> Place {
    Place { url: server.url(), prefix: "cs".to_owned() }
}

fn is_unavailable<T>(answer: &Result<T, StoreFault>) -> bool {
    matches!(answer, Err(StoreFault::Unavailable { .. }))
}

fn user() -> Person {
    Person::User(UserId::new("u1").unwrap())
}

fn lease(conn: u64) -> Lease {
    Lease { node: NodeName::new("n1").unwrap(), conn: ConnId(conn) }
}
