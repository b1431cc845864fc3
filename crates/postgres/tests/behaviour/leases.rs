//! T3: ids are unique because a worker id belongs to one node, which every write checks.

use std::sync::Arc;
use std::time::Duration;

use kefu_core::{IdSource, NodeName, SnowflakeIds, StoreFault, WorkerId};
use kefu_messaging::{AppendRequest, AppendSnapshot, AppendVerdict, decide_append};
use kefu_postgres::{PgStore, WorkerLease};
use kefu_session::Session;
use kefu_testkit::server::postgres::TestDatabase;
use kefu_testkit::{World, build, race};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Fixture, connect};

const TTL: Duration = Duration::from_secs(60);
const EXPIRE: &str = "UPDATE cg_worker SET expires_at = 0";

async fn lease(store: &PgStore, name: &str) -> WorkerLease {
    store.lease_worker(&NodeName::new(name).unwrap(), TTL).await.unwrap()
}

/// A node of its own on the database: its store, world, lease and ids.
struct Node {
    world: World,
    lease: WorkerLease,
    ids: Arc<SnowflakeIds>,
}

impl Node {
    async fn start(database: &TestDatabase<'_>, name: &str) -> Self {
        let store = connect(database).await;
        let lease = lease(&store, name).await;
        let world = World::new(store.stores());
        let clock = Arc::clone(&world.clock);
        let ids = Arc::new(SnowflakeIds::new(clock, lease.worker().unwrap(), 0));
        Self { world, lease, ids }
    }

    async fn send(&self, session: &Session, key: &str) -> Result<AppendVerdict, StoreFault> {
        let context = self.world.context();
        let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
            decide_append(snapshot, batch, &context, ids)
        };
        let sender = build::from_user(&session.user.user_id);
        let batch = [build::text(session.id, &sender, key, "hello")];
        self.world.stores.messages.append(&batch, &decide, self.ids.as_ref()).await
    }
}

fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, StoreFault>) -> bool {
    matches!(answer, Err(StoreFault::Unavailable { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_get_ids_of_their_own() {
    let fixture = Fixture::start().await;
    let stores = race(12, |n| {
        let store = fixture.store.clone();
        async move { lease(&store, &format!("n{n}")).await.worker() }
    });
    stores.await;
    let taken =
        fixture.database.query("SELECT count(DISTINCT worker_id), min(epoch) FROM cg_worker");
    assert_eq!(taken, "12|1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_id_was_taken_over_writes_nothing_until_it_has_another() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let old = Node::start(&fixture.database, "old").await;
    old.send(&session, "k1").await.unwrap();
    fixture.database.query(EXPIRE);
    let new = Node::start(&fixture.database, "new").await;
    assert_eq!(new.lease.worker(), old.lease.worker(), "taken over");
    let before = fixture.database.query("SELECT last_seq, version FROM cg_chat_session");

    let refused = old.send(&session, "k2").await;
    assert!(is_unavailable(&refused), "{refused:?}");
    let opened = old.world.try_open(&build::user("u2", 0)).await;
    assert!(is_unavailable(&opened), "{opened:?}");
    assert_eq!(fixture.messages(), 1);
    assert_eq!(fixture.database.query("SELECT last_seq, version FROM cg_chat_session"), before);
    new.send(&session, "k3").await.unwrap();

    let lost = old.lease.worker();
    old.lease.renew(&old.ids).await.unwrap();
    assert_ne!(old.lease.worker(), lost);
    let sent = old.send(&session, "k2").await.unwrap();
    let worker = (sent.messages[0].msg_id.get() >> 12) & 1023;
    assert_eq!(worker, i64::from(old.lease.worker().unwrap().get()));
    assert_eq!(fixture.messages(), 3);
}

/// The process freezes after its ids were made and wakes when a newer node has its worker id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_frozen_between_deciding_and_writing_writes_nothing() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let node = Node::start(&fixture.database, "frozen").await;
    let context = node.world.context();
    let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
        let verdict = decide_append(snapshot, batch, &context, ids);
        fixture.database.query("UPDATE cg_worker SET epoch = epoch + 1, node = 'newer'");
        verdict
    };
    let sender = build::from_user(&session.user.user_id);
    let batch = [build::text(session.id, &sender, "k", "late")];
    let answer = node.world.stores.messages.append(&batch, &decide, node.ids.as_ref()).await;
    assert!(is_unavailable(&answer), "{answer:?}");
    assert_eq!(fixture.messages(), 0);
    assert_eq!(fixture.database.query("SELECT last_seq FROM cg_chat_session"), "0");
}

/// What expired but was not taken goes on: the database was away for longer than the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_that_nobody_took_is_renewed() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let node = Node::start(&fixture.database, "slow").await;
    let worker = node.lease.worker();
    fixture.database.query(EXPIRE);
    assert!(is_unavailable(&node.send(&session, "k").await));
    node.lease.renew(&node.ids).await.unwrap();
    assert_eq!(node.lease.worker(), worker);
    node.send(&session, "k").await.unwrap();
}

/// Clocks differ by up to five seconds, so an id rests for ten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_was_just_given_back_rests() {
    let fixture = Fixture::start().await;
    let first = lease(&fixture.store, "first").await;
    let worker = first.worker();
    first.release().await;
    let second = lease(&connect(&fixture.database).await, "second").await;
    assert_ne!(second.worker(), worker);
    second.release().await;
    fixture.database.query("UPDATE cg_worker SET expires_at = expires_at - 11000");
    let third = lease(&connect(&fixture.database).await, "third").await;
    assert_eq!(third.worker(), worker, "free for longest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_id_a_node_does_not_start() {
    let fixture = Fixture::start().await;
    fixture.database.query(
        "INSERT INTO cg_worker SELECT n, 'x', 1, 9000000000000 FROM generate_series(1, 1023) AS n",
    );
    let node = NodeName::new("late").unwrap();
    let refused = fixture.store.lease_worker(&node, TTL).await;
    assert!(is_unavailable(&refused), "{refused:?}");
}

/// The keeper notices a refused write, takes another id at once, and gives it back at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keeper_heals_what_a_write_found_lost() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let Node { world, lease, ids } = Node::start(&fixture.database, "kept").await;
    let lost: Option<WorkerId> = lease.worker();
    let stop = CancellationToken::new();
    let keeper = TaskTracker::new().spawn(lease.keep(Arc::clone(&ids), stop.clone()));
    fixture.database.query("UPDATE cg_worker SET epoch = epoch + 1, node = 'newer'");
    let context = world.context();
    let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
        decide_append(snapshot, batch, &context, ids)
    };
    let sender = build::from_user(&session.user.user_id);
    let batch = [build::text(session.id, &sender, "k", "hello")];
    let mut refusals = 0;
    let verdict = loop {
        match world.stores.messages.append(&batch, &decide, ids.as_ref()).await {
            Ok(verdict) => break verdict,
            Err(fault) => assert!(matches!(fault, StoreFault::Unavailable { .. }), "{fault:?}"),
        }
        refusals += 1;
    };
    assert!(refusals > 0, "the lost lease was noticed by a write");
    let worker = (verdict.messages[0].msg_id.get() >> 12) & 1023;
    assert_ne!(worker, i64::from(lost.unwrap().get()));
    stop.cancel();
    keeper.await.unwrap();
    let mine = format!(
        "SELECT expires_at <= extract(epoch FROM clock_timestamp()) * 1000 \
         FROM cg_worker WHERE worker_id = {worker}"
    );
    assert_eq!(fixture.database.query(&mine), "t", "given back");
}
