//! Shutdown and restart: what was not handled by then is handled afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kefu_events::Lane;

use crate::common::{Recorder, Scene, idle, ids, pass};

#[tokio::test(start_paused = true)]
async fn unconfirmed_rows_of_a_former_process_are_handled_first() {
    let scene = Scene::new();
    let old = scene.commit(300).await;
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    let new = scene.commit(2).await;
    running.bus.publish(new.clone());
    pass(Duration::from_secs(1)).await;
    let seen = handler.seen();
    assert_eq!(seen.len(), 302, "each once");
    let old_at = |id| seen.iter().position(|seen| *seen == id);
    assert!(old.windows(2).all(|pair| old_at(pair[0].id) < old_at(pair[1].id)), "in order");
    assert_eq!(scene.unconfirmed().await, []);
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_what_is_queued_and_confirms_it() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    handler.close();
    let events = scene.commit(5).await;
    running.bus.publish(events.clone());
    idle().await;
    running.stop.cancel();
    idle().await;
    handler.open();
    running.shut_down().await;
    assert_eq!(handler.seen(), ids(&events), "L3");
    assert_eq!(scene.unconfirmed().await, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_cannot_deal_with_at_shutdown_is_left_to_the_next_process() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    handler.failures.store(usize::MAX, Ordering::SeqCst);
    let events = scene.commit(5).await;
    running.bus.publish(events.clone());
    idle().await;
    running.shut_down().await;
    assert_eq!(scene.unconfirmed().await, ids(&events), "not confirmed");

    let next = Recorder::new("durable");
    scene.start(Lane::Durable, 10, &[Arc::clone(&next)]);
    pass(Duration::from_secs(1)).await;
    assert_eq!(next.seen(), ids(&events));
}

#[tokio::test(start_paused = true)]
async fn events_published_after_shutdown_wait_in_the_outbox() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    let bus = running.bus.clone();
    running.shut_down().await;
    let events = scene.commit(2).await;
    bus.publish(events.clone());
    assert_eq!(scene.unconfirmed().await, ids(&events));
}

#[tokio::test(start_paused = true)]
async fn a_reserved_queue_without_a_handler_confirms_nothing() {
    let scene = Scene::new();
    let present = Recorder::new("present");
    let builder = kefu_events::BusBuilder::new().handler("missing", Lane::Durable, 10);
    let running = scene.start_with(builder, Lane::Durable, 10, &[Arc::clone(&present)]);
    let events = scene.commit(2).await;
    running.bus.publish(events.clone());
    pass(Duration::from_secs(5)).await;
    assert_eq!(present.seen(), ids(&events));
    assert_eq!(scene.unconfirmed().await, ids(&events), "they stay for whoever is missing");
}
