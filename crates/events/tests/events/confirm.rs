//! Confirming outbox rows: after every handler, in batches, and again when it fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kefu_events::Lane;

use crate::common::{Recorder, Scene, idle, ids, pass};

#[tokio::test(start_paused = true)]
async fn rows_are_confirmed_together() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 1_000, &[Arc::clone(&handler)]);
    idle().await;
    for _ in 0..10 {
        running.bus.publish(scene.commit(10).await);
        pass(Duration::from_millis(20)).await;
    }
    assert_eq!(handler.seen().len(), 100);
    pass(Duration::from_secs(1)).await;
    assert_eq!(scene.unconfirmed().await, []);
    let confirms = scene.ledger.confirms.lock().expect("no panic").clone();
    assert_eq!(confirms.iter().sum::<usize>(), 100);
    assert_eq!(confirms.len(), 1, "N2: batched");
}

#[tokio::test(start_paused = true)]
async fn two_handlers_must_both_have_dealt_with_it() {
    let scene = Scene::new();
    let (slow, quick) = (Recorder::new("slow"), Recorder::new("quick"));
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&slow), Arc::clone(&quick)]);
    idle().await;
    slow.close();
    let events = scene.commit(3).await;
    running.bus.publish(events.clone());
    pass(Duration::from_secs(5)).await;
    assert_eq!(quick.seen(), ids(&events));
    assert_eq!(scene.unconfirmed().await, ids(&events), "one of two is not enough");
    slow.open();
    pass(Duration::from_secs(1)).await;
    assert_eq!(scene.unconfirmed().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_failed_confirmation_is_repeated_without_handling_anything_again() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    scene.ledger.refusals.store(2, Ordering::SeqCst);
    let events = scene.commit(3).await;
    running.bus.publish(events.clone());
    pass(Duration::from_secs(1)).await;
    assert_eq!(scene.unconfirmed().await, ids(&events));
    pass(Duration::from_secs(10)).await;
    assert_eq!(scene.unconfirmed().await, [], "nobody had to ask");
    assert_eq!(handler.seen(), ids(&events));
}
