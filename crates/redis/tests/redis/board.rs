//! Copies end at the newest rows, in whatever order they come (A1, Q1).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use fred::prelude::{Client, KeysInterface, SortedSetsInterface};
use kefu_assignment::{LoadBoard, LoadCopy, SessionCopy};
use kefu_core::{AdminId, SessionId, UserId};
use kefu_session::Status;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::task::JoinSet;

use crate::harness::{Kind, Node, Place};

#[tokio::test]
async fn the_keys_hold_plain_values() {
    for kind in Kind::BOTH {
        let place = Place::new(kind);
        let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
        let board = node.coordination.board();
        board
            .apply(&[waiting(7, 1, "u7", 250), active(8, 1, "u8", "a1")], &[load("a1", 1, 3)])
            .await
            .unwrap();
        assert_eq!(text(&admin, &place, "session:owner:8").await.as_deref(), Some("a1"));
        assert_eq!(text(&admin, &place, "user:active_session:u7").await.as_deref(), Some("7"));
        assert_eq!(text(&admin, &place, "agent:load:a1").await.as_deref(), Some("3"));
        let member = "00000000000000000007";
        let score: Option<f64> = admin.zscore(place.key("queue:pending"), member).await.unwrap();
        assert_eq!(score, Some(-250.0));
        assert_eq!(board.find_owner(id(8)).await, Ok(Some(AdminId::new("a1").unwrap())));
        assert_eq!(board.find_owner(id(7)).await, Ok(None));
        assert_eq!(board.find_active_session(&user("u8")).await, Ok(Some(id(8))));
        assert_eq!(board.find_load(&AdminId::new("a1").unwrap()).await, Ok(Some(3)));
        assert_eq!(board.find_load(&AdminId::new("a2").unwrap()).await, Ok(None));
    }
}

#[tokio::test]
async fn an_end_leaves_nothing_but_its_version_for_a_while() {
    let place = Place::new(Kind::Plain);
    let (node, admin) = (Node::start(&place, "n1").await, place.admin().await);
    let board = node.coordination.board();
    board.apply(&[active(8, 1, "u8", "a1")], &[]).await.unwrap();
    board.apply(&[ended(8, 2, "u8")], &[]).await.unwrap();
    board.apply(&[active(8, 1, "u8", "a1")], &[]).await.unwrap();
    assert_eq!(board.find_owner(id(8)).await, Ok(None), "the older row came late");
    assert_eq!(board.find_active_session(&user("u8")).await, Ok(None));
    assert_eq!(open(&*board).await, BTreeSet::new());
    let left: i64 = admin.ttl(place.key("copy:session:8")).await.unwrap();
    assert!((1..=3_600).contains(&left), "{left}");
}

#[tokio::test]
async fn the_newer_session_of_a_user_stays_the_open_one() {
    let place = Place::new(Kind::Plain);
    let node = Node::start(&place, "n1").await;
    let board = node.coordination.board();
    // As far apart as numbers of a script cannot tell.
    let (first, second) = (i64::MAX - 1, i64::MAX);
    board.apply(&[waiting(second, 1, "u1", 0), waiting(first, 1, "u1", 0)], &[]).await.unwrap();
    assert_eq!(board.find_active_session(&user("u1")).await, Ok(Some(id(second))));
    board.apply(&[ended(first, 2, "u1")], &[]).await.unwrap();
    assert_eq!(board.find_active_session(&user("u1")).await, Ok(Some(id(second))));
}

#[tokio::test]
async fn the_line_is_ordered_by_priority_and_then_by_id() {
    let place = Place::new(Kind::Plain);
    let node = Node::start(&place, "n1").await;
    let board = node.coordination.board();
    let large = 1_i64 << 53;
    let rows = [
        waiting(5, 1, "a", 0),
        waiting(40, 1, "b", 10),
        waiting(9, 1, "c", 10),
        waiting(i64::MAX, 1, "d", large),
        waiting(3, 1, "e", -large),
    ];
    board.apply(&rows, &[]).await.unwrap();
    let order = [i64::MAX, 9, 40, 5, 3].map(id);
    assert_eq!(board.line(10).await.unwrap(), order);
    assert_eq!(board.line(2).await.unwrap(), order[..2]);
    assert_eq!(board.line(0).await.unwrap(), []);
}

#[tokio::test]
async fn every_session_that_stays_open_is_on_some_page() {
    let place = Place::new(Kind::Plain);
    let node = Node::start(&place, "n1").await;
    let board = node.coordination.board();
    let name = |n: i64| format!("u{n}");
    let rows: Vec<_> = (1..=3_000).map(|n| waiting(n, 1, &name(n), n)).collect();
    board.apply(&rows, &[]).await.unwrap();
    let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let page = board.list_open(cursor).await.unwrap();
        seen.extend(page.sessions);
        pages += 1;
        // Meanwhile others end, so that the set shrinks under the pages.
        let gone: Vec<_> =
            (1..=100).map(|n| n * 30 - pages).map(|n| ended(n, 2, &name(n))).collect();
        board.apply(&gone, &[]).await.unwrap();
        cursor = page.next;
        if cursor.is_none() || pages == 29 {
            break;
        }
    }
    assert!(pages > 1 && cursor.is_none());
    let stay = (1..=100).map(|n| id(n * 30));
    assert!(stay.into_iter().all(|id| seen.contains(&id)));
}

/// What a user's sessions and an agent went through, as rows.
#[derive(Debug, Clone)]
struct History {
    sessions: Vec<SessionCopy>,
    loads: Vec<LoadCopy>,
}

fn history() -> impl Strategy<Value = History> {
    let life = prop::collection::vec((0..3_u8, 0..4_i64), 1..5);
    let user = prop::collection::vec(life, 1..4);
    let sessions = prop::collection::vec(user, 1..5).prop_map(|users| {
        let users = users.iter().enumerate();
        users.flat_map(|(n, lives)| rows_of(n, lives)).collect::<Vec<_>>()
    });
    let loads =
        prop::collection::vec(prop::collection::vec(0..9_u32, 1..6), 1..4).prop_map(|all| {
            let rows = all.into_iter().enumerate().flat_map(|(n, loads)| {
                let name = format!("a{n}");
                let versions = loads.into_iter().zip(1..);
                versions
                    .map(move |(count, version)| load(&name, version, count))
                    .collect::<Vec<_>>()
            });
            rows.collect::<Vec<_>>()
        });
    (sessions.prop_shuffle(), loads.prop_shuffle())
        .prop_map(|(sessions, loads)| History { sessions, loads })
}

/// One session after the other: each ends before the next opens, the last one may stay open.
fn rows_of(user: usize, lives: &[Vec<(u8, i64)>]) -> Vec<SessionCopy> {
    let name = format!("u{user}");
    let mut rows = Vec::new();
    for (n, life) in lives.iter().enumerate() {
        let session = i64::try_from(user * 10 + n + 1).unwrap();
        let mut version = 0;
        for (status, priority) in life {
            version += 1;
            rows.push(match status {
                0 => waiting(session, version, &name, *priority),
                1 => active(session, version, &name, "a1"),
                _ => active(session, version, &name, "a2"),
            });
        }
        let is_last = n + 1 == lives.len();
        if !is_last || life.len() % 2 == 0 {
            rows.push(ended(session, version + 1, &name));
        }
    }
    rows
}

impl History {
    /// The same of other people and sessions, so that cases share a board.
    fn of_case(mut self, case: i64) -> Self {
        for row in &mut self.sessions {
            row.session_id = id(row.session_id.get() + case * 1_000);
            row.user_id = user(&format!("{}-{case}", row.user_id));
        }
        for row in &mut self.loads {
            row.admin_id = AdminId::new(format!("{}-{case}", row.admin_id)).unwrap();
        }
        self
    }

    /// The newest row of each session.
    fn newest(&self) -> BTreeMap<SessionId, &SessionCopy> {
        let mut newest: BTreeMap<SessionId, &SessionCopy> = BTreeMap::new();
        for row in &self.sessions {
            let entry = newest.entry(row.session_id).or_insert(row);
            if entry.version < row.version {
                *entry = row;
            }
        }
        newest
    }
}

/// Any order, any grouping, any number of writers at once, on two nodes: the newest rows win.
#[test]
fn copies_end_at_the_newest_rows() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for kind in Kind::BOTH {
        let place = Place::new(kind);
        let start = async { [Node::start(&place, "n1").await, Node::start(&place, "n2").await] };
        let nodes = runtime.block_on(start);
        let config = Config { failure_persistence: None, ..Config::with_cases(64) };
        let case = Cell::new(0);
        let outcome = TestRunner::new(config).run(&(history(), 1..6_usize), |(history, group)| {
            case.set(case.get() + 1);
            runtime.block_on(converge(&nodes, &history.of_case(case.get()), group));
            Ok(())
        });
        outcome.unwrap();
    }
}

async fn converge(nodes: &[Node], history: &History, group: usize) {
    let mut writers = JoinSet::new();
    for node in nodes {
        for rows in history.sessions.chunks(group) {
            let (board, rows) = (node.coordination.board(), rows.to_vec());
            writers.spawn(async move { board.apply(&rows, &[]).await });
        }
        for rows in history.loads.chunks(group) {
            let (board, rows) = (node.coordination.board(), rows.to_vec());
            writers.spawn(async move { board.apply(&[], &rows).await });
        }
    }
    for written in writers.join_all().await {
        written.unwrap();
    }
    let board = nodes[0].coordination.board();
    check_sessions(&*board, &history.newest()).await;
    check_loads(&*board, history).await;
}

async fn check_sessions(board: &dyn LoadBoard, newest: &BTreeMap<SessionId, &SessionCopy>) {
    let mut active: BTreeMap<&UserId, Option<SessionId>> = BTreeMap::new();
    for row in newest.values() {
        let open = Some(row.session_id).filter(|_| row.status != Status::Ended);
        let current = active.entry(&row.user_id).or_default();
        *current = (*current).max(open);
        assert_eq!(board.find_owner(row.session_id).await.unwrap(), row.admin_id, "{row:?}");
    }
    for (user, session) in &active {
        assert_eq!(board.find_active_session(user).await.unwrap(), *session, "{user}");
    }
    let mut waiting: Vec<_> = newest.values().collect();
    waiting.retain(|row| row.status == Status::Waiting);
    waiting.sort_by_key(|row| (-row.priority, row.session_id));
    let waiting: Vec<_> = waiting.iter().map(|row| row.session_id).collect();
    let mut line = board.line(10_000).await.unwrap();
    line.retain(|session| newest.contains_key(session));
    assert_eq!(line, waiting);
    let mut listed = open(board).await;
    listed.retain(|session| newest.contains_key(session));
    assert_eq!(listed, active.into_values().flatten().collect());
}

async fn check_loads(board: &dyn LoadBoard, history: &History) {
    let mut newest: BTreeMap<&AdminId, (i64, u32)> = BTreeMap::new();
    for row in &history.loads {
        let entry = newest.entry(&row.admin_id).or_default();
        *entry = (*entry).max((row.version, row.load));
    }
    for (admin, (_, load)) in newest {
        assert_eq!(board.find_load(admin).await.unwrap(), Some(load), "{admin}");
    }
}

async fn open(board: &dyn LoadBoard) -> BTreeSet<SessionId> {
    let (mut all, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page = board.list_open(cursor).await.unwrap();
        all.extend(page.sessions);
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

async fn text(admin: &Client, place: &Place, key: &str) -> Option<String> {
    admin.get(place.key(key)).await.unwrap()
}

fn id(raw: i64) -> SessionId {
    SessionId::new(raw).unwrap()
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

fn waiting(session: i64, version: i64, user_name: &str, priority: i64) -> SessionCopy {
    SessionCopy {
        session_id: id(session),
        version,
        user_id: user(user_name),
        status: Status::Waiting,
        admin_id: None,
        priority,
    }
}

fn active(session: i64, version: i64, user_name: &str, owner: &str) -> SessionCopy {
    let admin_id = Some(AdminId::new(owner).unwrap());
    SessionCopy { status: Status::Active, admin_id, ..waiting(session, version, user_name, 0) }
}

fn ended(session: i64, version: i64, user_name: &str) -> SessionCopy {
    SessionCopy { status: Status::Ended, ..waiting(session, version, user_name, 0) }
}

fn load(admin: &str, version: i64, load: u32) -> LoadCopy {
    LoadCopy { admin_id: AdminId::new(admin).unwrap(), version, load }
}
