//! `LoadBoard`: copies that only ever become newer (A1).

use std::sync::Arc;

use kefu_assignment::{LoadBoard, LoadCopy, SessionCopy};
use kefu_core::SessionId;
use kefu_session::Status;
use rand::seq::SliceRandom;

use crate::{LoadBoardHarness, build, race, seeded};

/// A waiting session is in the line and its user's, an active one has an owner, an ended one nothing.
pub async fn a_session_is_where_its_row_says<H: LoadBoardHarness>() {
    let harness = H::start().await;
    let board = harness.board();
    let of = |version, status, owner: Option<&str>| SessionCopy {
        admin_id: owner.map(build::admin),
        ..copy("u1", 7, version, status, 5)
    };
    let check = async |owner: Option<&str>, open: bool, waits: bool| {
        let (id, user) = (session(7), build::user("u1", 0).user_id);
        assert_eq!(board.find_owner(id).await.unwrap(), owner.map(build::admin));
        assert_eq!(board.find_active_session(&user).await.unwrap(), open.then_some(id));
        let line: Vec<_> = waits.then_some(id).into_iter().collect();
        assert_eq!(board.line(10).await.unwrap(), line);
        let listed = every_open(board.as_ref()).await;
        assert_eq!(listed.contains(&id), open);
    };
    check(None, false, false).await;
    board.apply(&[of(1, Status::Waiting, None)], &[]).await.unwrap();
    check(None, true, true).await;
    board.apply(&[of(2, Status::Active, Some("a1"))], &[]).await.unwrap();
    check(Some("a1"), true, false).await;
    board.apply(&[of(3, Status::Active, Some("a2"))], &[]).await.unwrap();
    check(Some("a2"), true, false).await;
    board.apply(&[of(4, Status::Waiting, None)], &[]).await.unwrap();
    check(None, true, true).await;
    board.apply(&[of(5, Status::Ended, None)], &[]).await.unwrap();
    check(None, false, false).await;
    // Late copies change nothing, also not those of the same version.
    board
        .apply(&[of(3, Status::Active, Some("a1")), of(5, Status::Waiting, None)], &[])
        .await
        .unwrap();
    check(None, false, false).await;
}

/// The end of an earlier session does not take the later one away, in whatever order they come.
pub async fn a_users_later_session_stays<H: LoadBoardHarness>() {
    let harness = H::start().await;
    let board = harness.board();
    let user = build::user("u1", 0).user_id;
    let later = copy("u1", 8, 1, Status::Waiting, 0);
    board.apply(&[copy("u1", 7, 1, Status::Waiting, 0), later], &[]).await.unwrap();
    board.apply(&[copy("u1", 7, 2, Status::Ended, 0)], &[]).await.unwrap();
    assert_eq!(board.find_active_session(&user).await.unwrap(), Some(session(8)));
    board.apply(&[copy("u1", 6, 9, Status::Waiting, 0)], &[]).await.unwrap();
    assert_eq!(board.find_active_session(&user).await.unwrap(), Some(session(8)), "an older one");
}

/// Q1: larger priorities in front, then smaller ids; a refreshed priority moves the session.
pub async fn the_line_is_in_its_order<H: LoadBoardHarness>() {
    let harness = H::start().await;
    let board = harness.board();
    let largest = 1 << 53;
    let waiting =
        |id, version, priority| copy(&format!("u{id}"), id, version, Status::Waiting, priority);
    let copies = [
        waiting(5, 1, 0),
        waiting(9, 1, 100),
        waiting(10, 1, 100),
        waiting(1, 1, -largest),
        waiting(2, 1, largest),
        waiting(i64::MAX, 1, 0),
    ];
    board.apply(&copies, &[]).await.unwrap();
    let ids = |ids: &[i64]| ids.iter().copied().map(session).collect::<Vec<_>>();
    assert_eq!(board.line(10).await.unwrap(), ids(&[2, 9, 10, 5, i64::MAX, 1]));
    assert_eq!(board.line(3).await.unwrap(), ids(&[2, 9, 10]));
    board.apply(&[waiting(5, 2, 101)], &[]).await.unwrap();
    assert_eq!(board.line(3).await.unwrap(), ids(&[2, 5, 9]));
}

/// Loads follow the newest row.
pub async fn a_load_only_becomes_newer<H: LoadBoardHarness>() {
    let harness = H::start().await;
    let board = harness.board();
    let of = |version, load| LoadCopy { admin_id: build::admin("a1"), version, load };
    assert_eq!(board.find_load(&build::admin("a1")).await.unwrap(), None);
    for (version, load, expected) in [(5, 3, 3), (4, 9, 3), (5, 8, 3), (6, 0, 0)] {
        board.apply(&[], &[of(version, load)]).await.unwrap();
        assert_eq!(board.find_load(&build::admin("a1")).await.unwrap(), Some(expected));
    }
}

/// All versions of many rows, mixed up and applied by many at once, end at the newest of each.
pub async fn any_order_ends_at_the_newest<H: LoadBoardHarness>() {
    let harness = H::start().await;
    let board = harness.board();
    let mut random = seeded("any_order_ends_at_the_newest");
    let mut work = Vec::new();
    for id in 1..=20_i64 {
        let user = format!("u{id}");
        let owner = |n: i64| Some(build::admin(&format!("a{n}")));
        work.push((copy(&user, id, 1, Status::Waiting, id), load(id, 1, 1)));
        work.push((
            SessionCopy { admin_id: owner(id), ..copy(&user, id, 2, Status::Active, id) },
            load(id, 2, 2),
        ));
        let last = match id % 3 {
            0 => copy(&user, id, 3, Status::Ended, id),
            1 => copy(&user, id, 3, Status::Waiting, id + 100),
            _ => SessionCopy { admin_id: owner(99), ..copy(&user, id, 3, Status::Active, id) },
        };
        work.push((last, load(id, 3, 7)));
    }
    let mut shuffled = Vec::new();
    for _ in 0..8 {
        work.shuffle(&mut random);
        shuffled.push(work.clone());
    }
    let shuffled = Arc::new(shuffled);
    race(8, |n| {
        let (board, shuffled) = (harness.board(), Arc::clone(&shuffled));
        async move {
            for chunk in shuffled[n].chunks(7) {
                let (sessions, agents): (Vec<_>, Vec<_>) = chunk.iter().cloned().unzip();
                board.apply(&sessions, &agents).await.unwrap();
            }
        }
    })
    .await;
    let mut line = Vec::new();
    for id in 1..=20_i64 {
        let (active, owner) = match id % 3 {
            0 => (None, None),
            1 => {
                line.push(session(id));
                (Some(session(id)), None)
            }
            _ => (Some(session(id)), Some(build::admin("a99"))),
        };
        let user = build::user(&format!("u{id}"), 0).user_id;
        assert_eq!(board.find_active_session(&user).await.unwrap(), active, "{id}");
        assert_eq!(board.find_owner(session(id)).await.unwrap(), owner, "{id}");
        assert_eq!(board.find_load(&build::admin(&format!("a{id}"))).await.unwrap(), Some(7));
    }
    line.reverse();
    assert_eq!(board.line(100).await.unwrap(), line, "larger priorities in front");
}

async fn every_open(board: &dyn LoadBoard) -> Vec<SessionId> {
    let (mut open, mut cursor) = (Vec::new(), None);
    loop {
        let page = board.list_open(cursor).await.unwrap();
        open.extend(page.sessions);
        cursor = page.next;
        if cursor.is_none() {
            return open;
        }
    }
}

fn copy(user: &str, id: i64, version: i64, status: Status, priority: i64) -> SessionCopy {
    SessionCopy {
        session_id: session(id),
        version,
        user_id: build::user(user, 0).user_id,
        status,
        admin_id: None,
        priority,
    }
}

fn load(agent: i64, version: i64, load: u32) -> LoadCopy {
    LoadCopy { admin_id: build::admin(&format!("a{agent}")), version, load }
}

fn session(id: i64) -> SessionId {
    SessionId::new(id).unwrap()
}
