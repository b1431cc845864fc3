//! Connections of one person where their node was killed: its leases live on, and keep nobody out (L2).

use kefu_core::ConnId;
use kefu_desk::{DeskError, Intent};

use super::{House, Node};
use crate::common::{pass, visitor};

const LIMIT: u64 = 10;

/// As many as may be are taken in, and one more is not.
async fn is_full_at_the_limit(node: &Node, first: u64) {
    for conn in first..first + LIMIT {
        let taken = node.scene.connect(&visitor("u1"), conn, Intent::Resume, &[]).await;
        assert!(taken.is_ok(), "L2: connection {} of {LIMIT}: {taken:?}", conn - first + 1);
    }
    let late = first + LIMIT;
    let refused = node.scene.connect(&visitor("u1"), late, Intent::Resume, &[]).await;
    assert!(matches!(refused, Err(DeskError::TooManyConnections)), "L2: {refused:?}");
    node.scene.people.remove(ConnId(late));
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_killed_node_keep_nobody_out_elsewhere() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    is_full_at_the_limit(&a, 1).await;
    a.dies(&house).await;
    pass(1.0).await;
    is_full_at_the_limit(&b, 101).await;
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_killed_node_keep_nobody_out_of_its_successor_of_the_same_name() {
    let house = House::build();
    let first = house.node("a").await;
    is_full_at_the_limit(&first, 1).await;
    first.dies(&house).await;
    pass(1.0).await;
    // Numbers of connections begin anew with each process, or go on where another one ends.
    let second = house.node("a").await;
    is_full_at_the_limit(&second, 6).await;
    second.dies(&house).await;
    let third = house.node("a").await;
    is_full_at_the_limit(&third, 101).await;
}
