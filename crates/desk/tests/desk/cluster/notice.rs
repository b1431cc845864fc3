//! What is said about the line, once, although every node sees it (Q2).

use kefu_messaging::Push;
use kefu_testkit::build::{admin, trace};

use super::{House, Node, talking};
use crate::common::{NOWHERE, agent, pass, visitor};

fn places(node: &Node, conn: u64) -> Vec<(u32, u32)> {
    let place = |push: &Push| match push {
        Push::QueuePosition { position, total, .. } => Some((*position, *total)),
        _ => None,
    };
    node.scene.pushes(conn).iter().filter_map(place).collect()
}

fn lists(node: &Node, conn: u64) -> Vec<(Vec<u32>, u32)> {
    let list = |sent: crate::people::Sent| match sent.push {
        Push::QueueList { entries, total, .. } => {
            Some((entries.iter().map(|entry| entry.position).collect(), total))
        }
        _ => None,
    };
    node.scene.sent_to(conn).into_iter().filter_map(list).collect()
}

#[tokio::test(start_paused = true)]
async fn the_offline_notice_comes_once_and_where_the_visitor_is() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    a.scene.consult("u1", 1).await;
    b.scene.consult("u2", 2).await;
    pass(30.0).await;
    a.scene
        .say(&visitor("u1"), 1, a.scene.consult("u1", 1).await.session_id.expect("open"), "k")
        .await;
    pass(30.0).await;
    assert_eq!((a.count(1, "offline_notice"), b.count(2, "offline_notice")), (1, 1), "Q2");
    let told = |node: &Node| node.scene.people.log().len();
    assert_eq!((told(&a), told(&b), told(&c)), (1, 1, 0), "Q2: {:?}", a.scene.pushes(1));
    // The ten minutes are the session's, whatever node it is told from.
    c.scene.resume("u1", 3).await;
    pass(30.0).await;
    assert_eq!(c.count(3, "offline_notice"), 0, "Q2");
}

#[tokio::test(start_paused = true)]
async fn every_device_of_a_visitor_hears_the_offline_notice_wherever_it_is() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    a.scene.consult("u1", 1).await;
    b.scene.resume("u1", 2).await;
    c.scene.consult("u2", 3).await;
    pass(30.0).await;
    let notices =
        [(&a, 1), (&b, 2), (&c, 3)].map(|(node, conn)| node.count(conn, "offline_notice"));
    assert_eq!(notices, [1, 1, 1], "Q2, M2: once each");
}

#[tokio::test(start_paused = true)]
async fn who_was_on_no_node_is_told_on_coming_back_wherever_that_is() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    a.scene.consult("u1", 1).await;
    a.scene.leave(&visitor("u1"), 1).await;
    pass(5.0).await;
    b.scene.resume("u1", 2).await;
    pass(1.0).await;
    assert_eq!((a.count(1, "offline_notice"), b.count(2, "offline_notice")), (0, 1), "Q2");
}

#[tokio::test(start_paused = true)]
async fn places_and_console_lists_are_told_on_every_node() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    b.scene.agent("a1", 10, 1).await;
    c.scene.agent("a2", 20, 0).await;
    let served = a.scene.consult("u1", 1).await.session_id.expect("open");
    pass(1.0).await;
    assert!(a.scene.session(served).await.is_owned_by(&admin("a1")));
    a.scene.consult("u2", 2).await;
    pass(1.0).await;
    b.scene.consult("u3", 3).await;
    pass(1.0).await;
    assert_eq!(places(&a, 2), [(1, 1), (1, 2)], "Q2: as it changes");
    assert_eq!(places(&b, 3), [(2, 2)], "Q2");
    let both = (vec![1, 2], 2);
    assert_eq!(lists(&b, 10).last(), Some(&both), "Q2: the owner's console");
    assert_eq!(lists(&c, 20).last(), Some(&both), "Q2: a console on a third node");
    a.scene.desk.end(&visitor("u1"), served, NOWHERE, &trace()).await.expect("ended");
    pass(1.0).await;
    assert_eq!(places(&b, 3).last(), Some(&(1, 1)), "Q2: the front was served elsewhere");
    assert_eq!(lists(&c, 20).last(), Some(&(vec![1], 1)), "Q2");
}

#[tokio::test(start_paused = true)]
async fn after_a_requeue_the_visitors_node_says_what_to_expect() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    talking(&a, &b).await;
    pass(1.0).await;
    a.clear();
    b.scene.desk.agent_offline(&agent("a1"), true, NOWHERE, &trace()).await.expect("offline");
    pass(1.0).await;
    assert_eq!(a.scene.kinds(1), ["requeued", "offline_notice"], "Q2, Z7");
}
