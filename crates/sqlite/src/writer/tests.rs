//! What becomes of the writing connection when a transaction does not end well.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sea_orm::{ConnectionTrait, Value};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::*;
use crate::rows::{execute, statement};

const INSERT: &str = "INSERT INTO cg_chat_outbox VALUES (?1, 'x', 1, 0, 's', 't', 'k', ?2, NULL)";
const COUNT: &str = "SELECT COUNT(*) FROM cg_chat_outbox";

struct Fixture {
    writer: Writer,
    readers: DatabaseConnection,
    path: PathBuf,
    _folder: TempDir,
}

async fn fixture() -> Fixture {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    let target = target(path.clone());
    let connection = target.connect(Access::Write, 1).await.unwrap();
    kefu_migrations::migrate(&connection).await.unwrap();
    let readers = target.connect(Access::Read, 2).await.unwrap();
    Fixture { writer: Writer::new(target, connection), readers, path, _folder: folder }
}

fn target(path: PathBuf) -> Target {
    let busy_timeout = Duration::from_millis(50);
    Target { path, busy_timeout, acquire_timeout: Duration::from_secs(5) }
}

impl Fixture {
    async fn insert(&self, id: i64, bytes: usize) -> Result<u64, StoreFault> {
        self.writer.transact("test", &Insert { id, bytes }).await
    }

    async fn rows(&self) -> i64 {
        let row = self.readers.query_one_raw(statement(COUNT, [])).await.unwrap().unwrap();
        row.try_get_by_index(0).unwrap()
    }

    async fn on_writer(&self, sql: &str) {
        let slot = self.writer.slot.lock().await;
        slot.connection.as_ref().unwrap().execute_unprepared(sql).await.unwrap();
    }

    async fn reads(&self, access: Access, pragma: &str) -> String {
        let connection = match access {
            Access::Write => self.writer.slot.lock().await.connection.clone().unwrap(),
            Access::Read => self.readers.clone(),
        };
        let row = connection.query_one_raw(statement(&format!("PRAGMA {pragma}"), [])).await;
        let row = row.unwrap().unwrap();
        let number = row.try_get_by_index::<i64>(0).map(|number| number.to_string());
        number.or_else(|_| row.try_get_by_index(0)).unwrap()
    }
}

struct Insert {
    id: i64,
    bytes: usize,
}

impl Work for Insert {
    type Output = u64;

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<u64>, Failure> {
        let values: [Value; 2] = [self.id.into(), "x".repeat(self.bytes).into()];
        Ok(Outcome::Commit(execute(transaction, INSERT, values).await?))
    }
}

/// Writes, says so, and never ends.
struct Stuck {
    wrote: Notify,
}

impl Work for Stuck {
    type Output = ();

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<()>, Failure> {
        execute(transaction, INSERT, [1.into(), "x".into()]).await?;
        self.wrote.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn the_settings_are_really_set() {
    let fixture = fixture().await;
    let settings = [("synchronous", "2"), ("foreign_keys", "1"), ("busy_timeout", "50")];
    for access in [Access::Write, Access::Read] {
        for (pragma, value) in settings {
            assert_eq!(fixture.reads(access, pragma).await, value, "{access:?} {pragma}");
        }
        assert_eq!(fixture.reads(access, "journal_mode").await, "wal", "{access:?}");
    }
    assert_eq!(fixture.reads(Access::Write, "query_only").await, "0");
    assert_eq!(fixture.reads(Access::Read, "query_only").await, "1");
    assert!(fixture.readers.execute_unprepared("DELETE FROM cg_chat_outbox").await.is_err());
}

#[tokio::test]
async fn a_full_disk_loses_nothing_acked_and_heals() {
    let fixture = fixture().await;
    let mut acked = 0;
    for round in 0..3 {
        let pages: i64 = fixture.reads(Access::Write, "page_count").await.parse().unwrap();
        fixture.on_writer(&format!("PRAGMA max_page_count = {}", pages + 8)).await;
        let full = loop {
            match fixture.insert(acked + 1, 5_000).await {
                Ok(_) => acked += 1,
                Err(fault) => break fault,
            }
            assert!(acked < 100, "the limit holds");
        };
        assert!(matches!(full, StoreFault::Unavailable { .. }), "{full:?}");
        assert_eq!(fixture.rows().await, acked, "round {round}");
        // The next connection has no such limit: the disk has room again.
        fixture.insert(acked + 1, 5_000).await.unwrap();
        acked += 1;
        assert_eq!(fixture.rows().await, acked, "round {round}");
    }
}

#[tokio::test]
async fn a_dropped_caller_leaves_no_open_transaction() {
    let fixture = fixture().await;
    let stuck = Stuck { wrote: Notify::new() };
    tokio::select! {
        ended = fixture.writer.transact("test", &stuck) => panic!("{ended:?}"),
        () = stuck.wrote.notified() => {}
    }
    assert!(fixture.writer.slot.lock().await.suspect);
    fixture.insert(2, 1).await.unwrap();
    assert_eq!(fixture.rows().await, 1, "only the second");
    assert!(!fixture.writer.slot.lock().await.suspect);
    // Another process can write: nobody holds the lock.
    let other = target(fixture.path.clone()).connect(Access::Write, 1).await.unwrap();
    other.execute_unprepared("BEGIN IMMEDIATE; ROLLBACK").await.unwrap();
}

/// Dropped at any await point, also inside BEGIN and COMMIT: the row is there whole or not at all, and
/// the next caller is served.
#[tokio::test]
async fn a_caller_dropped_anywhere_harms_nobody() {
    let fixture = fixture().await;
    let mut before = 0;
    for polls in 0..60 {
        let mut call = Box::pin(fixture.insert(1_000 + polls, 1));
        let polled = AtomicUsize::new(0);
        let limited = std::future::poll_fn(|context| {
            if polled.fetch_add(1, Ordering::Relaxed) >= usize::try_from(polls).unwrap() {
                return std::task::Poll::Ready(None);
            }
            call.as_mut().poll(context).map(Some)
        });
        let answer = limited.await;
        drop(call);
        fixture.insert(2_000 + polls, 1).await.unwrap();
        let now = fixture.rows().await;
        let added = now - before;
        match answer {
            Some(_) => assert_eq!(added, 2, "{polls}"),
            None => assert!((1..=2).contains(&added), "{polls}: {added}"),
        }
        before = now;
    }
}

#[tokio::test]
async fn a_refused_row_leaves_the_connection_in_use() {
    let fixture = fixture().await;
    fixture.insert(1, 1).await.unwrap();
    let again = fixture.insert(1, 1).await;
    assert!(matches!(again, Err(StoreFault::Internal { .. })), "{again:?}");
    assert!(!fixture.writer.slot.lock().await.suspect, "a duplicate says nothing about it");
    fixture.insert(2, 1).await.unwrap();
    assert_eq!(fixture.rows().await, 2);
}

#[tokio::test]
async fn a_file_held_by_another_process_is_unavailable_and_heals() {
    let fixture = fixture().await;
    let other = target(fixture.path.clone()).connect(Access::Write, 1).await.unwrap();
    let held = other.begin_with_options(immediate()).await.unwrap();
    let busy = fixture.insert(1, 1).await;
    assert!(matches!(busy, Err(StoreFault::Unavailable { .. })), "{busy:?}");
    held.rollback().await.unwrap();
    fixture.insert(1, 1).await.unwrap();
    assert_eq!(fixture.rows().await, 1);
}

#[tokio::test]
async fn a_crowded_writer_is_unavailable() {
    let mut fixture = fixture().await;
    fixture.writer.target.acquire_timeout = Duration::from_millis(20);
    let held = fixture.writer.slot.lock().await;
    let crowded = fixture.insert(1, 1).await;
    assert!(matches!(crowded, Err(StoreFault::Unavailable { .. })), "{crowded:?}");
    drop(held);
    fixture.insert(1, 1).await.unwrap();
}
