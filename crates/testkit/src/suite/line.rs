//! `WaitingLine`: order, places, and that both speak of one instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kefu_core::{Balance, SessionId};
use kefu_queue::{Place, ahead};
use kefu_session::Session;
use rand::RngExt;

use crate::build;
use crate::{Harness, World, race, seeded};

/// CC-15: balances 100, 500, 200, 500, 300 stand as 500 (first come), 500, 300, 200, 100.
pub async fn larger_balances_stand_in_front<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = open_all(&world, &[100, 500, 200, 500, 300]).await;
    let line = world.stores.line.front(50).await.unwrap();
    assert_eq!(line.total, 5);
    let expected: Vec<_> = [1, 3, 4, 2, 0].map(|n: usize| opened[n].clone()).into();
    assert_eq!(line.sessions, expected);
}

/// Q1: any balances, negative and equal ones included, stand as the rule says, and `place` agrees.
pub async fn place_is_the_index_in_front<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut random = seeded("place_is_the_index_in_front");
    let edges = [0, -1, 1, Balance::MAX, -Balance::MAX, Balance::MAX - 1, 0, Balance::MAX];
    let balances: Vec<i64> =
        edges.into_iter().chain((0..40).map(|_| random.random_range(-9..9))).collect();
    let mut expected = open_all(&world, &balances).await;
    expected.sort_by(ahead);
    let line = world.stores.line.front(1_000).await.unwrap();
    assert_eq!(line.sessions, expected);
    let total = line.total;
    for (session, position) in expected.iter().zip(1..) {
        let place = world.stores.line.place(session.id).await.unwrap();
        assert_eq!(place, Some(Place { position, total }));
    }
}

/// `limit` cuts the list, never `total`.
pub async fn a_limit_cuts_the_list_only<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    assert_eq!(world.stores.line.front(5).await.unwrap().total, 0);
    let opened = open_all(&world, &[1, 2, 3, 4]).await;
    let line = world.stores.line.front(2).await.unwrap();
    assert_eq!((line.sessions.len(), line.total), (2, 4));
    assert_eq!(line.sessions[0], opened[3]);
}

/// Who does not wait has no place.
pub async fn only_waiting_sessions_have_a_place<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = open_all(&world, &[3, 2, 1]).await;
    let admin = world.agent("a1", 5).await;
    world.claim(&admin, opened[0].id).await.unwrap();
    world.end_by_user(&opened[1]).await;
    let line = &world.stores.line;
    assert_eq!(line.place(opened[0].id).await.unwrap(), None);
    assert_eq!(line.place(opened[1].id).await.unwrap(), None);
    assert_eq!(line.place(SessionId::new(7).unwrap()).await.unwrap(), None);
    let first = Place { position: 1, total: 1 };
    assert_eq!(line.place(opened[2].id).await.unwrap(), Some(first));
    let front = line.front(9).await.unwrap();
    assert_eq!((front.sessions.len(), front.total), (1, 1));
}

/// Z7: a requeued session gets its old place back.
pub async fn a_requeue_restores_the_place<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = open_all(&world, &[5, 5, 5]).await;
    let admin = world.agent("a1", 5).await;
    world.claim(&admin, opened[0].id).await.unwrap();
    world.offline(&admin, true).await.unwrap();
    let line = world.stores.line.front(9).await.unwrap();
    let ids: Vec<_> = line.sessions.iter().map(|session| session.id).collect();
    assert_eq!(ids, [opened[0].id, opened[1].id, opened[2].id]);
    assert_eq!(line.sessions[0].queued_at, opened[0].queued_at);
}

/// A refreshed balance moves its session.
pub async fn a_refresh_moves_the_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = open_all(&world, &[1, 2, 3]).await;
    world.open_as(&build::user("u0", 10)).await;
    let place = world.stores.line.place(opened[0].id).await.unwrap();
    assert_eq!(place, Some(Place { position: 1, total: 3 }));
}

/// `front` is one instant: while sessions come and go its list and its total never disagree, and
/// every place lies inside its own total.
pub async fn the_line_is_read_at_one_instant<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let anchor = world.open("anchor", -5).await;
    let done = Arc::new(AtomicBool::new(false));
    let reader = |world: World, done: Arc<AtomicBool>| async move {
        let mut rounds = 0;
        while !done.load(Ordering::Acquire) || rounds == 0 {
            let line = world.stores.line.front(1_000).await.unwrap();
            assert_eq!(line.total as usize, line.sessions.len());
            assert!(line.sessions.is_sorted_by(|left, right| ahead(left, right).is_lt()));
            let place = world.stores.line.place(anchor.id).await.unwrap().unwrap();
            assert_eq!(place.position, place.total, "the poorest stands last");
            rounds += 1;
            // A store that never waits would otherwise keep the writers off the threads for good.
            tokio::task::yield_now().await;
        }
    };
    let mut readers = tokio::task::JoinSet::new();
    readers.spawn(reader(world.clone(), Arc::clone(&done)));
    readers.spawn(reader(world.clone(), Arc::clone(&done)));
    race(8, |n| {
        let world = world.clone();
        async move {
            for round in 0..10_u8 {
                let session = world.open(&format!("u{n}"), i64::from(round)).await;
                world.end_by_user(&session).await;
            }
        }
    })
    .await;
    done.store(true, Ordering::Release);
    readers.join_all().await;
    assert_eq!(world.stores.line.front(10).await.unwrap().total, 1);
}

/// The line is what SQL says, also after a restart.
pub async fn a_restart_keeps_the_line<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    open_all(&world, &[1, 9, 5]).await;
    let before = world.stores.line.front(9).await.unwrap();
    let world = world.restarted(&mut harness).await;
    assert_eq!(world.stores.line.front(9).await.unwrap(), before);
}

async fn open_all(world: &World, balances: &[i64]) -> Vec<Session> {
    let mut opened = Vec::new();
    for (n, balance) in balances.iter().enumerate() {
        opened.push(world.open(&format!("u{n}"), *balance).await);
    }
    opened
}
