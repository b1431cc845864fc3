//! What becomes of events that find a queue full, are stopped, or are refused by their handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kefu_core::StoreFault;
use kefu_events::{BusBuilder, Lane};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};

use crate::common::{Censor, Recorder, Scene, idle, ids, pass};

#[tokio::test(start_paused = true)]
async fn a_durable_handler_that_overflows_reads_the_outbox_in_order_and_loses_nothing() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 2, &[Arc::clone(&handler)]);
    idle().await;
    handler.close();
    let mut events = Vec::new();
    for _ in 0..50 {
        let committed = scene.commit(1).await;
        events.extend(committed.clone());
        running.bus.publish(committed);
        tokio::task::yield_now().await;
    }
    pass(Duration::from_secs(5)).await;
    assert_eq!(
        scene.unconfirmed().await,
        ids(&events),
        "nothing is confirmed before it is handled"
    );

    handler.open();
    pass(Duration::from_secs(1)).await;
    assert_eq!(handler.seen(), ids(&events), "each once, in order");
    assert_eq!(scene.unconfirmed().await, []);

    let late = scene.commit(3).await;
    running.bus.publish(late.clone());
    idle().await;
    assert!(handler.seen().ends_with(&ids(&late)), "back on the fast path");
}

#[tokio::test(start_paused = true)]
async fn a_newer_event_never_overtakes_a_backlog() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 2, &[Arc::clone(&handler)]);
    idle().await;
    handler.close();
    let backlog = scene.commit(600).await;
    running.bus.publish(backlog.clone());
    handler.open();
    // The relay works through its pages while new events keep coming.
    let mut all = backlog;
    for _ in 0..100 {
        let committed = scene.commit(1).await;
        all.extend(committed.clone());
        running.bus.publish(committed);
        tokio::task::yield_now().await;
    }
    pass(Duration::from_secs(1)).await;
    assert_eq!(handler.seen(), ids(&all), "N2: in order, none twice, none missing");
}

#[tokio::test(start_paused = true)]
async fn room_in_the_queue_does_not_let_a_newer_event_overtake_what_overflowed() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 2, &[Arc::clone(&handler)]);
    idle().await;
    handler.close();
    let events = scene.commit(5).await;
    let publish = |n: usize| running.bus.publish([events[n].clone()]);
    publish(0);
    idle().await;
    // The first is in hand, two are queued, the fourth finds no room.
    (1..=3).for_each(publish);
    handler.step();
    idle().await;
    publish(4);
    handler.open();
    pass(Duration::from_secs(1)).await;
    assert_eq!(handler.seen(), ids(&events), "in order");
}

/// Counts one counter.
struct Counting {
    name: &'static str,
    value: Arc<AtomicU64>,
}

impl metrics::Recorder for Counting {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == self.name {
            Counter::from_arc(Arc::clone(&self.value))
        } else {
            Counter::noop()
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_best_effort_handler_drops_what_does_not_fit_and_counts_it() {
    let scene = Scene::new();
    let handler = Recorder::new("best_effort");
    let running = scene.start(Lane::BestEffort, 2, &[Arc::clone(&handler)]);
    handler.close();
    let events = scene.commit(10).await;
    let value = Arc::new(AtomicU64::new(0));
    let counting = Counting { name: "kefu_bus_dropped_total", value: Arc::clone(&value) };
    metrics::with_local_recorder(&counting, || running.bus.publish(events.clone()));
    assert_eq!(value.load(Ordering::SeqCst), 8);
    handler.open();
    pass(Duration::from_secs(5)).await;
    assert_eq!(handler.seen(), ids(&events)[..2], "the first ones, and never from the outbox");
}

#[tokio::test(start_paused = true)]
async fn a_best_effort_handler_that_fails_loses_that_event_only() {
    let scene = Scene::new();
    let handler = Recorder::new("best_effort");
    let running = scene.start(Lane::BestEffort, 10, &[Arc::clone(&handler)]);
    handler.failures.store(1, Ordering::SeqCst);
    let events = scene.commit(3).await;
    running.bus.publish(events.clone());
    idle().await;
    assert_eq!(handler.seen(), ids(&events)[1..]);
}

#[tokio::test(start_paused = true)]
async fn one_slow_handler_does_not_hold_up_the_others() {
    let scene = Scene::new();
    let (slow, quick) = (Recorder::new("slow"), Recorder::new("quick"));
    let running = scene.start(Lane::Durable, 2, &[Arc::clone(&slow), Arc::clone(&quick)]);
    idle().await;
    slow.close();
    let events = scene.commit(2).await;
    running.bus.publish(events.clone());
    idle().await;
    assert_eq!(quick.seen(), ids(&events));
    assert_eq!(slow.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn an_intercepted_event_reaches_nobody_and_is_not_read_back_either() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let (first, second) = (Arc::new(Censor::default()), Arc::new(Censor::default()));
    let builder = || BusBuilder::new().interceptor(first.clone()).interceptor(second.clone());
    let running = scene.start_with(builder(), Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    let events = scene.commit(3).await;
    let stopped = events[1].id;
    first.stopped.lock().expect("no panic").push(stopped);
    running.bus.publish(events.clone());
    idle().await;
    assert_eq!(handler.seen(), [events[0].id, events[2].id]);
    let asked = second.asked.lock().expect("no panic").clone();
    assert_eq!(asked, [events[0].id, events[2].id], "in the order added, up to the one who stops");

    running.bus.recover(&StoreFault::Indeterminate { reason: String::new() });
    pass(Duration::from_secs(1)).await;
    assert_eq!(handler.seen().len(), 2, "not by way of the outbox");
    assert_eq!(scene.unconfirmed().await, [stopped], "its row stays");

    running.shut_down().await;
    let again = Recorder::new("durable");
    scene.start_with(builder(), Lane::Durable, 10, &[Arc::clone(&again)]);
    pass(Duration::from_secs(1)).await;
    assert_eq!(again.seen(), [], "nor after a restart");
}

#[tokio::test(start_paused = true)]
async fn a_failing_handler_is_given_the_event_again_before_any_later_one() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    handler.failures.store(5, Ordering::SeqCst);
    let events = scene.commit(3).await;
    running.bus.publish(events.clone());
    pass(Duration::from_millis(350)).await;
    assert_eq!(handler.seen(), [], "backing off");
    assert_eq!(scene.unconfirmed().await, ids(&events));
    pass(Duration::from_secs(10)).await;
    assert_eq!(handler.seen(), ids(&events));
    assert_eq!(scene.unconfirmed().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_lost_commit_answer_has_the_outbox_read() {
    let scene = Scene::new();
    let handler = Recorder::new("durable");
    let running = scene.start(Lane::Durable, 10, &[Arc::clone(&handler)]);
    idle().await;
    // Committed, but its publisher never learned of it.
    let events = scene.commit(2).await;
    running.bus.recover(&StoreFault::unavailable("certainly not applied"));
    pass(Duration::from_secs(5)).await;
    assert_eq!(handler.seen(), []);
    running.bus.recover(&StoreFault::Indeterminate { reason: String::new() });
    pass(Duration::from_secs(1)).await;
    assert_eq!(handler.seen(), ids(&events), "N2");
    assert_eq!(scene.unconfirmed().await, []);
}
