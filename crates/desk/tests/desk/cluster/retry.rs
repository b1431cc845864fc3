//! Pushes are repeated where the receiver is (M3, 2.5).

use kefu_messaging::{MessageStatus, Push};

use super::{House, Node, talking};
use crate::common::{agent, idle, pass, visitor};

/// When a connection was pushed which message.
fn pushed(node: &Node, conn: u64) -> Vec<u64> {
    let sent = node.scene.sent_to(conn).into_iter();
    sent.filter(|sent| matches!(sent.push, Push::Message { .. }))
        .map(|sent| sent.second as u64)
        .collect()
}

fn failures(node: &Node, conn: u64) -> usize {
    let failed = |push: &&Push| matches!(push, Push::PeerAck { status: MessageStatus::Failed, .. });
    node.scene.pushes(conn).iter().filter(failed).count()
}

#[tokio::test(start_paused = true)]
async fn the_node_of_the_receiver_repeats_and_the_sender_elsewhere_hears_the_failure() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(10.5).await;
    assert_eq!(pushed(&b, 10), [0, 1, 3, 7], "M3");
    assert_eq!(failures(&a, 1), 0, "M3: one last interval");
    pass(50.0).await;
    assert_eq!(pushed(&b, 10).len(), 4, "M3");
    assert_eq!(failures(&a, 1), 1, "M3: told on the other node, once");
    let stored = a.scene.stores.messages.find(message.msg_id).await.expect("readable");
    assert_eq!(stored.expect("stored").status, MessageStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_ack_taken_on_one_node_stops_the_pushes_of_all() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    a.scene.agent("a1", 11, 0).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(1.5).await;
    assert_eq!((pushed(&a, 11), pushed(&b, 10)), (vec![0, 1], vec![0, 1]), "M3");
    a.scene.acknowledge(&agent("a1"), &message).await;
    pass(60.0).await;
    assert_eq!((pushed(&a, 11).len(), pushed(&b, 10).len()), (2, 2), "2.5");
    assert_eq!(failures(&a, 1), 0);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_nowhere_connected_gets_no_attempts_from_any_node() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    b.scene.leave(&agent("a1"), 10).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(20.0).await;
    let stored = a.scene.stores.messages.find(message.msg_id).await.expect("readable");
    assert_eq!(stored.expect("stored").status, MessageStatus::Pending, "M3");
    assert_eq!(failures(&a, 1), 0, "M3: not failed, nobody tried");
    let answer = b.scene.agent("a1", 12, 0).await;
    assert_eq!(answer.unread.len(), 1, "M4");
    pass(20.0).await;
    assert_eq!(pushed(&b, 12).len(), 3, "M3: the answer was the first push");
    assert_eq!(failures(&a, 1), 1);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_who_moves_to_another_node_is_followed() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let session = talking(&a, &b).await;
    a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(0.5).await;
    b.scene.leave(&agent("a1"), 10).await;
    c.scene.agent("a1", 12, 0).await;
    pass(60.0).await;
    assert_eq!(pushed(&b, 10), [0], "nobody is there any more");
    assert_eq!(pushed(&c, 12), [1, 3, 7], "M3, M4: the answer was the first push");
    assert_eq!(failures(&a, 1), 1, "M3: once");
    idle().await;
}
