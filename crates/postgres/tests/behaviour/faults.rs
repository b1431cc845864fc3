//! Connections that break, servers that stop, freeze or crash: nothing acknowledged is lost, nothing is
//! stored twice, and the same store goes on afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kefu_core::{IdSource, StoreFault};
use kefu_messaging::{AppendRequest, AppendSnapshot, decide_append};
use kefu_postgres::{PgOptions, PgStore};
use kefu_session::Session;
use kefu_testkit::server::postgres::PostgresServer;
use kefu_testkit::{World, build};
use sea_orm::sqlx::{self, Connection, Executor, PgConnection};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::{Fixture, support};

const CUT_OTHERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
     WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_while_idle_are_not_noticed() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    for round in 0..5 {
        fixture.database.query(CUT_OTHERS);
        fixture.world.say(session.id, &sender, &format!("k{round}"), "hello").await;
    }
    assert_eq!(fixture.messages(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_inside_a_transaction_is_replaced_and_the_message_stored_once() {
    let fixture = Fixture::start().await;
    let world = locking(&fixture, support::options()).await;
    let session = world.open("u1", 0).await;
    let tries = AtomicUsize::new(0);
    let context = world.context();
    let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            fixture.database.query(CUT_OTHERS);
        }
        decide_append(snapshot, batch, &context, ids)
    };
    let batch = [text(&session, "k")];
    let ids = world.ids.as_ref();
    let verdict = world.stores.messages.append(&batch, &decide, ids).await.unwrap();
    assert_eq!(verdict.messages.len(), 1);
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    assert_eq!(fixture.messages(), 1);
}

/// Without prepared statements every batch is a transaction that locks.
async fn locking(fixture: &Fixture, options: PgOptions) -> World {
    let options = PgOptions { statement_cache: 0, ..options };
    World::new(PgStore::connect(&fixture.database.url(), options).await.unwrap().stores())
}

/// A row that somebody else holds is waited for, not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_held_by_another_program_is_unavailable_and_heals() {
    let fixture = Fixture::start().await;
    let lock_timeout = Duration::from_millis(50);
    let options = PgOptions { lock_timeout, ..support::options() };
    let store = PgStore::connect(&fixture.database.url(), options).await.unwrap();
    let world = World::new(store.stores());
    let session = world.open("u1", 0).await;
    let mut other = PgConnection::connect(&fixture.database.url()).await.unwrap();
    other.execute("BEGIN; SELECT * FROM cg_chat_session FOR UPDATE").await.unwrap();
    let batch = [text(&session, "k")];
    let held = world.append(&batch).await;
    assert!(matches!(held, Err(StoreFault::Unavailable { .. })), "{held:?}");
    other.execute("ROLLBACK").await.unwrap();
    assert_eq!(world.append(&batch).await.unwrap().messages.len(), 1);
}

/// Whoever locks in another order than kefu costs a second try, not an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_with_another_program_is_tried_again() {
    let fixture = Fixture::start().await;
    let first = fixture.world.open("u1", 0).await;
    let second = fixture.world.open("u2", 0).await;
    let url = fixture.database.url();
    let mut other = PgConnection::connect(&url).await.unwrap();
    let lock = |session: &Session| {
        format!("SELECT * FROM cg_chat_session WHERE id = {} FOR UPDATE", session.id)
    };
    // The first to wait is the first to look for a deadlock, and the one who is ended.
    other.execute("BEGIN; SET LOCAL deadlock_timeout = '1min'").await.unwrap();
    other.execute(sqlx::AssertSqlSafe(lock(&second))).await.unwrap();
    let world = fixture.world.clone();
    let batch = [text(&first, "k"), text(&second, "k")];
    let append = TaskTracker::new().spawn(async move { world.append(&batch).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while fixture.database.query(waiting) == "0" {}
    other.execute(sqlx::AssertSqlSafe(lock(&first))).await.unwrap();
    other.execute("ROLLBACK").await.unwrap();
    assert_eq!(append.await.unwrap().unwrap().messages.len(), 2);
}

/// A migration that adds a column is applied while gateways run: their statements are prepared anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_added_meanwhile_is_not_noticed() {
    let fixture = Fixture::start().await;
    let options = PgOptions { max_connections: 1, ..support::options() };
    let store = PgStore::connect(&fixture.database.url(), options).await.unwrap();
    let world = World::new(store.stores());
    let session = world.open("u1", 0).await;
    world.append(&[text(&session, "k1")]).await.unwrap();
    fixture.database.query("ALTER TABLE cg_chat_session ADD COLUMN extra TEXT");
    assert_eq!(world.append(&[text(&session, "k2")]).await.unwrap().messages.len(), 1);
    fixture.database.query("ALTER TABLE cg_chat_message ADD COLUMN extra TEXT");
    assert_eq!(world.append(&[text(&session, "k3")]).await.unwrap().messages.len(), 1);
    assert_eq!(world.history(session.id).await.len(), 3);
}

/// A node that froze inside a transaction holds its rows for no longer than the idle timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_frozen_transaction_is_ended_by_the_server() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let idle_timeout = Duration::from_millis(200);
    let frozen = locking(&fixture, PgOptions { idle_timeout, ..support::options() }).await;
    let context = frozen.context();
    let (world, waiting) = (fixture.world.clone(), session.clone());
    let tries = AtomicUsize::new(0);
    let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            // Says nothing to the server until the other one, who needs the row, is through.
            let wait = async { world.append(&[text(&waiting, "other")]).await.unwrap() };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(wait));
        }
        decide_append(snapshot, batch, &context, ids)
    };
    let ids = frozen.ids.as_ref();
    let late = [text(&session, "late")];
    let verdict = frozen.stores.messages.append(&late, &decide, ids).await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 2, "the first try was rolled back by the server");
    assert_eq!(verdict.messages[0].seq.0, 2, "behind the other one's");
}

/// Writers go on through an orderly stop, a crash and a freeze of the server; each sends a key until
/// it is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn nothing_acknowledged_is_lost_when_the_server_goes_and_comes() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let database = support::database_of(&server).await;
    let answer_timeout = Duration::from_millis(500);
    let options =
        PgOptions { answer_timeout, acquire_timeout: answer_timeout, ..support::options() };
    let store = PgStore::connect(&database.url(), options).await.unwrap();
    let world = World::new(store.stores());
    let load = Load::start(&world).await;
    load.progress(40).await;
    for (away, back) in [
        (PostgresServer::stop as fn(&PostgresServer), PostgresServer::resume as fn(&_)),
        (PostgresServer::crash, PostgresServer::resume),
        (PostgresServer::freeze, PostgresServer::thaw),
    ] {
        tokio::task::block_in_place(|| away(&server));
        load.refusals(4).await;
        tokio::task::block_in_place(|| back(&server));
        load.progress(40).await;
    }
    let acknowledged = load.finish().await;
    for (session, keys) in acknowledged {
        let stored: Vec<_> = world.history(session.id).await;
        let found: BTreeSet<_> = stored.iter().map(|m| m.client_msg_id.to_string()).collect();
        assert_eq!(found.len(), stored.len(), "stored once");
        assert_eq!(found, keys, "acknowledged, so stored");
        let places: Vec<_> = stored.iter().map(|message| message.seq.0).collect();
        assert!(places.iter().copied().eq(1..=stored.len() as i64), "{places:?}");
    }
}

fn text(session: &Session, key: &str) -> AppendRequest {
    build::text(session.id, &build::from_user(&session.user.user_id), key, "hello")
}

/// Writers, one a session.
struct Load {
    writers: JoinSet<(Session, BTreeSet<String>)>,
    acknowledged: watch::Receiver<usize>,
    refused: watch::Receiver<usize>,
    stop: watch::Sender<bool>,
}

impl Load {
    async fn start(world: &World) -> Self {
        let (acks, acknowledged) = watch::channel(0);
        let (refusals, refused) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let (acks, refusals) = (Arc::new(acks), Arc::new(refusals));
        let mut writers = JoinSet::new();
        for number in 0..4 {
            let session = world.open(&format!("u{number}"), 0).await;
            let (world, stopped) = (world.clone(), stopped.clone());
            let (acks, refusals) = (Arc::clone(&acks), Arc::clone(&refusals));
            writers.spawn(async move {
                let mut keys = BTreeSet::new();
                while !*stopped.borrow() {
                    let key = format!("k{}", keys.len());
                    // The same key until it is acknowledged: after an unknown answer, too (T2).
                    while let Err(fault) = world.append(&[text(&session, &key)]).await {
                        assert!(!matches!(fault, StoreFault::Internal { .. }), "{fault:?}");
                        refusals.send_modify(|count| *count += 1);
                    }
                    keys.insert(key);
                    acks.send_modify(|count| *count += 1);
                }
                (session, keys)
            });
        }
        Self { writers, acknowledged, refused, stop }
    }

    /// Waits for so many more acknowledgements.
    async fn progress(&self, more: usize) {
        wait(&self.acknowledged, more).await;
    }

    /// Waits for so many more refusals.
    async fn refusals(&self, more: usize) {
        wait(&self.refused, more).await;
    }

    async fn finish(self) -> Vec<(Session, BTreeSet<String>)> {
        self.stop.send(true).unwrap();
        self.writers.join_all().await
    }
}

async fn wait(count: &watch::Receiver<usize>, more: usize) {
    let mut count = count.clone();
    let goal = *count.borrow() + more;
    let reached = count.wait_for(|now| *now >= goal);
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("in time").unwrap();
}

/// What a pooler or an operator sees names the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_carry_a_name() {
    let fixture = Fixture::start().await;
    let mut other = PgConnection::connect(&fixture.database.url()).await.unwrap();
    let named = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'kefu'";
    let count: i64 = sqlx::query_scalar(named).fetch_one(&mut other).await.unwrap();
    assert!(count >= 1);
}
