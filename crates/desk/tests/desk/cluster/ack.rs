//! Receipts between nodes: their word is said once, and what it said is found again when it was lost
//! (M3, N4).

use kefu_messaging::{MessageStatus, Push, Receipt};
use kefu_testkit::build::trace;

use super::{House, Node, clear, talking};
use crate::common::{agent, idle, pass, visitor};

/// What a connection was told of its messages, by position.
fn told(node: &Node, conn: u64) -> Vec<(i64, MessageStatus)> {
    let ack = |push: &Push| match push {
        Push::PeerAck { seq, status, .. } => Some((seq.0, *status)),
        _ => None,
    };
    node.scene.pushes(conn).iter().filter_map(ack).collect()
}

#[tokio::test(start_paused = true)]
async fn a_receipt_whose_word_was_lost_is_told_after_the_gap() {
    // Either end of the wire may be the one that is cut.
    for is_senders in [true, false] {
        let house = House::build();
        let (a, b) = (house.node("a").await, house.node("b").await);
        let session = talking(&a, &b).await;
        let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
        let answer = b.scene.say(&agent("a1"), 10, session, "k").await;
        idle().await;
        let cut = if is_senders { &a } else { &b };
        house.wire.cut(&cut.scene.node);
        b.scene.acknowledge(&agent("a1"), &message).await;
        a.scene.acknowledge(&visitor("u1"), &answer).await;
        pass(1.0).await;
        assert_eq!((told(&a, 1), told(&b, 10)), (vec![], vec![]), "N5");
        house.wire.mend(&cut.scene.node);
        pass(6.0).await;
        assert_eq!(told(&a, 1).last(), Some(&(1, MessageStatus::Delivered)), "N4: {is_senders}");
        assert_eq!(told(&b, 10).last(), Some(&(2, MessageStatus::Delivered)), "N4: {is_senders}");
        clear(&[&a, &b]);
        pass(60.0).await;
        assert_eq!((told(&a, 1), told(&b, 10)), (vec![], vec![]), "told once and for all");
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_while_nobodys_lease_was_known_is_told_when_they_are_known_again() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let message = a.scene.say(&visitor("u1"), 1, session, "k").await;
    pass(5.5).await;
    house.coordination.lose_leases();
    b.scene.acknowledge(&agent("a1"), &message).await;
    idle().await;
    assert_eq!(told(&a, 1), [], "nobody knows where the sender is");
    pass(6.0).await;
    assert_eq!(told(&a, 1).last(), Some(&(1, MessageStatus::Delivered)), "N4");
}

#[tokio::test(start_paused = true)]
async fn the_former_owner_is_told_of_no_receipt_after_a_gap() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    let session = talking(&a, &b).await;
    c.scene.agent("a2", 20, 5).await;
    let answer = b.scene.say(&agent("a1"), 10, session, "k").await;
    b.scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    clear(&[&a, &b, &c]);
    house.wire.cut(&a.scene.node);
    a.scene.acknowledge(&visitor("u1"), &answer).await;
    pass(1.0).await;
    house.wire.mend(&a.scene.node);
    pass(6.0).await;
    assert_eq!(told(&b, 10), [], "A3");
    assert_eq!(told(&c, 20), [(1, MessageStatus::Delivered)], "M2: who holds the side now");
}

#[tokio::test(start_paused = true)]
async fn receipts_of_more_than_a_page_are_all_told_after_the_gap() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    let mut last = a.scene.say(&visitor("u1"), 1, session, "1").await;
    for n in 2..=120 {
        last = a.scene.say(&visitor("u1"), 1, session, &n.to_string()).await;
    }
    idle().await;
    house.wire.cut(&a.scene.node);
    let (by, trace) = (agent("a1"), trace());
    let read = b.scene.desk.acknowledge(&by, None, last.msg_id, Receipt::Read, true, &trace);
    read.await.expect("taken");
    pass(1.0).await;
    assert_eq!(told(&a, 1), [], "N5");
    house.wire.mend(&a.scene.node);
    pass(6.0).await;
    let mut told = told(&a, 1);
    told.sort_unstable_by_key(|(seq, _)| *seq);
    let all: Vec<_> = (1..=120).map(|seq| (seq, MessageStatus::Read)).collect();
    assert_eq!(told, all, "N4: none of them stays merely stored on the screen");
}
