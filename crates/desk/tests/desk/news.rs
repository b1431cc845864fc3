//! What waiting visitors and consoles hear about the line (Q1, Q2).

use kefu_core::{Caller, ConnId, SessionId};
use kefu_desk::Intent;
use kefu_messaging::{Push, QueueEntry};
use kefu_testkit::build::{trace, user};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

fn notices(scene: &Scene, conn: u64) -> usize {
    scene.kinds(conn).iter().filter(|kind| **kind == "offline_notice").count()
}

fn positions(scene: &Scene, conn: u64) -> Vec<(u32, u32)> {
    let place = |push: &Push| match push {
        Push::QueuePosition { position, total, .. } => Some((*position, *total)),
        _ => None,
    };
    scene.pushes(conn).iter().filter_map(place).collect()
}

fn lists(scene: &Scene, conn: u64) -> Vec<(Vec<QueueEntry>, u32, i64)> {
    let list = |push: &Push| match push {
        Push::QueueList { entries, total, version } => Some((entries.to_vec(), *total, *version)),
        _ => None,
    };
    scene.sent_to(conn).iter().filter_map(|sent| list(&sent.push)).collect()
}

async fn consult_with(scene: &Scene, id: &str, balance: i64, conn: u64) -> SessionId {
    let caller = Caller::User(user(id, balance));
    let answer = scene.connect(&caller, conn, Intent::Consult, &[]).await.expect("connected");
    answer.session_id.expect("open")
}

#[tokio::test(start_paused = true)]
async fn nobody_online_is_told_once_in_ten_minutes_not_per_message() {
    let scene = Scene::start();
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    pass(1.0).await;
    assert_eq!(scene.kinds(1), ["offline_notice"], "Q2, CC-14");
    for n in 0..5 {
        scene.say(&visitor("u1"), 1, session, &format!("k{n}")).await;
        pass(1.0).await;
    }
    scene.consult("u1", 2).await;
    scene.consult("u2", 3).await;
    pass(1.0).await;
    assert_eq!(notices(&scene, 1), 1, "Q2");
    assert_eq!(positions(&scene, 1), [], "Q2: a place would promise somebody");
    scene.stay(&visitor("u1"), 1, 600).await;
    scene.consult("u3", 4).await;
    pass(1.0).await;
    assert_eq!(notices(&scene, 1), 2, "Q2: after ten minutes it is due again");
}

#[tokio::test(start_paused = true)]
async fn a_requeue_is_followed_by_the_notice_even_within_ten_minutes() {
    let scene = Scene::start();
    scene.consult("u1", 1).await;
    pass(1.0).await;
    scene.agent("a1", 10, 1).await;
    pass(1.0).await;
    scene.desk.agent_offline(&agent("a1"), true, NOWHERE, &trace()).await.expect("offline");
    pass(1.0).await;
    assert_eq!(scene.kinds(1), ["offline_notice", "assigned", "requeued", "offline_notice"], "Q2");
}

#[tokio::test(start_paused = true)]
async fn while_somebody_has_room_nobody_is_alarmed() {
    let scene = Scene::start();
    scene.agent("a1", 10, 10).await;
    for n in 1..=10 {
        scene.consult(&format!("u{n}"), n).await;
    }
    pass(5.0).await;
    for n in 1..=10 {
        assert_eq!(scene.kinds(n), ["assigned"]);
    }
}

#[tokio::test(start_paused = true)]
async fn places_are_pushed_when_they_changed_and_agree_with_the_list() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    let served = scene.consult("u0", 9).await.session_id.expect("open");
    idle().await;
    consult_with(&scene, "u1", 100, 1).await;
    pass(1.0).await;
    consult_with(&scene, "u2", 500, 2).await;
    pass(1.0).await;
    consult_with(&scene, "u3", 50, 3).await;
    pass(1.0).await;
    assert_eq!(positions(&scene, 1), [(1, 1), (2, 2), (2, 3)], "Q1, Q2");
    assert_eq!(positions(&scene, 2), [(1, 2), (1, 3)]);
    assert_eq!(positions(&scene, 3), [(3, 3)]);

    let list = scene.desk.queue_list(&agent("a1")).await.expect("readable");
    let listed: Vec<_> =
        list.entries.iter().map(|e| (e.user.user_id.to_string(), e.position)).collect();
    let expected = [("u2", 1), ("u1", 2), ("u3", 3)].map(|(id, n)| (id.to_owned(), n));
    assert_eq!((listed, list.total), (expected.to_vec(), 3), "highest balance first");

    pass(60.0).await;
    assert_eq!(positions(&scene, 3).len(), 1, "Q2: only when it changed");
    scene.desk.end(&visitor("u0"), served, NOWHERE, &trace()).await.expect("ended");
    pass(1.0).await;
    assert_eq!(scene.kinds(2).last(), Some(&"assigned"));
    assert_eq!(positions(&scene, 1).last(), Some(&(1, 2)));
    assert_eq!(positions(&scene, 3).last(), Some(&(2, 2)));
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_arrivals_is_coalesced() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    scene.consult("u0", 1_000).await;
    pass(1.0).await;
    scene.people.log().clear();
    for n in 1..=40 {
        scene.consult(&format!("u{n}"), n).await;
        pass(0.005).await;
    }
    pass(1.0).await;
    // 200 ms of arrivals: at most what was said at once and what was said 250 ms later.
    assert!(positions(&scene, 1).len() <= 2, "Q2: {:?}", positions(&scene, 1));
    assert!(lists(&scene, 10).len() <= 2, "Q2");
    assert_eq!(positions(&scene, 1).last(), Some(&(1, 40)));
    assert_eq!(positions(&scene, 40), [(40, 40)]);
}

#[tokio::test(start_paused = true)]
async fn consoles_see_the_first_fifty_and_the_total_with_growing_versions() {
    let scene = Scene::start();
    scene.agent("a1", 1_000, 0).await;
    for n in 1..=60 {
        scene.consult(&format!("u{n}"), n).await;
        pass(0.3).await;
    }
    let lists = lists(&scene, 1_000);
    assert!(lists.is_sorted_by(|a, b| a.2 < b.2), "an older list is noticed");
    let (entries, total, _) = lists.last().expect("told");
    assert_eq!((entries.len(), *total), (50, 60), "Q2");
    assert!(entries.iter().zip(1..).all(|(entry, position)| entry.position == position));
}

#[tokio::test(start_paused = true)]
async fn an_agent_who_goes_turns_places_into_the_notice_and_back() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    scene.consult("u0", 9).await;
    idle().await;
    scene.consult("u1", 1).await;
    pass(1.0).await;
    scene.leave(&agent("a1"), 10).await;
    pass(1.0).await;
    scene.agent("a1", 11, 0).await;
    pass(1.0).await;
    assert_eq!(scene.kinds(1), ["position", "offline_notice", "position"], "Q2");
    assert_eq!(scene.people.log().iter().filter(|s| s.conn == ConnId(9)).count(), 1, "served");
}

#[tokio::test(start_paused = true)]
async fn a_requeue_is_followed_by_the_place_even_if_it_is_the_same_as_before() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    scene.consult("u0", 9).await;
    idle().await;
    scene.consult("u1", 1).await;
    pass(1.0).await;
    scene.agent("a2", 20, 2).await;
    pass(1.0).await;
    scene.desk.agent_offline(&agent("a2"), true, NOWHERE, &trace()).await.expect("offline");
    pass(1.0).await;
    assert_eq!(scene.kinds(1), ["position", "assigned", "requeued", "position"], "Q2");
    assert_eq!(positions(&scene, 1), [(1, 1), (1, 1)]);
}
