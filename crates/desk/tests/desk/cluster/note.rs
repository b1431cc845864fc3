//! A note is told on the node of whoever may read it (N1).

use super::{House, clear, talking};
use crate::common::{agent, pass};
use crate::note::note;

#[tokio::test(start_paused = true)]
async fn a_note_is_told_on_every_node_once() {
    let house = House::build();
    let (a, b) = (house.node("a").await, house.node("b").await);
    let session = talking(&a, &b).await;
    a.scene.supervisor("boss", 30).await;
    b.scene.agent("a1", 11, 0).await;
    a.scene.agent("a1", 12, 0).await;
    clear(&[&a, &b]);
    note(&b.scene, &agent("a1"), 10, session, "by the agent").await.expect("added");
    pass(30.0).await;
    assert_eq!(a.scene.kinds(30), ["note"], "the supervisor elsewhere");
    assert_eq!((a.scene.kinds(12), b.scene.kinds(11)), (vec!["own note"], vec!["own note"]));
    assert_eq!(a.scene.kinds(1), [] as [&str; 0], "B95");
    assert_eq!(b.scene.kinds(10), [] as [&str; 0], "the origin has its answer");
}
