//! A bus over the outbox of a world in memory, with handlers that note what they see.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{Clock, EventId, ManualClock, StoreFault, Timestamp};
use kefu_events::{
    Bus, BusBuilder, Envelope, Handler, HandlerError, Interceptor, Lane, Outbox, Pass,
};
use kefu_memory::MemoryWorld;
use kefu_testkit::World;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Notes what it handled; holds what it may not handle yet; fails as often as told.
pub(crate) struct Recorder {
    name: &'static str,
    allowed: watch::Sender<usize>,
    pub(crate) failures: AtomicUsize,
    seen: Mutex<Vec<EventId>>,
}

impl Recorder {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            allowed: watch::Sender::new(usize::MAX),
            failures: AtomicUsize::new(0),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn close(&self) {
        self.allowed.send_replace(self.seen().len());
    }

    pub(crate) fn open(&self) {
        self.allowed.send_replace(usize::MAX);
    }

    /// Lets one event more pass.
    pub(crate) fn step(&self) {
        self.allowed.send_modify(|allowed| *allowed += 1);
    }

    pub(crate) fn seen(&self) -> Vec<EventId> {
        self.seen.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl Handler for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        let mut allowed = self.allowed.subscribe();
        let may = allowed.wait_for(|allowed| self.seen().len() < *allowed).await;
        drop(may.expect("the recorder lives"));
        let failing = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if failing {
            return Err(HandlerError { reason: "told to".into() });
        }
        self.seen.lock().expect("no panic").push(envelope.id);
        Ok(())
    }
}

/// The outbox of the world, counting confirmations and refusing some.
pub(crate) struct Ledger {
    inner: Arc<dyn Outbox>,
    pub(crate) confirms: Mutex<Vec<usize>>,
    pub(crate) refusals: AtomicUsize,
}

#[async_trait]
impl Outbox for Ledger {
    async fn list_unconfirmed(
        &self,
        before: Timestamp,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreFault> {
        self.inner.list_unconfirmed(before, after, limit).await
    }

    async fn count_unconfirmed(&self, limit: u32) -> Result<u32, StoreFault> {
        self.inner.count_unconfirmed(limit).await
    }

    async fn list_changes(&self, after: i64, limit: u32) -> Result<Vec<Envelope>, StoreFault> {
        self.inner.list_changes(after, limit).await
    }

    async fn confirm(&self, ids: &[EventId], now: Timestamp) -> Result<(), StoreFault> {
        let refused = self
            .refusals
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if refused {
            return Err(StoreFault::unavailable("told to"));
        }
        self.confirms.lock().expect("no panic").push(ids.len());
        self.inner.confirm(ids, now).await
    }

    async fn trim(&self, before: Timestamp, limit: u32) -> Result<u64, StoreFault> {
        self.inner.trim(before, limit).await
    }
}

/// Stops the events it was told to.
#[derive(Default)]
pub(crate) struct Censor {
    pub(crate) stopped: Mutex<Vec<EventId>>,
    pub(crate) asked: Mutex<Vec<EventId>>,
}

impl Interceptor for Censor {
    fn intercept(&self, envelope: &Envelope) -> Pass {
        self.asked.lock().expect("no panic").push(envelope.id);
        let stopped = self.stopped.lock().expect("no panic").contains(&envelope.id);
        if stopped { Pass::Stop } else { Pass::On }
    }
}

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) ledger: Arc<Ledger>,
    opened: AtomicUsize,
}

/// A running bus.
pub(crate) struct Running {
    pub(crate) bus: Bus,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let stores = MemoryWorld::new(Arc::new(ManualClock::default())).stores();
        let world = World::new(stores);
        let ledger = Arc::new(Ledger {
            inner: Arc::clone(&world.stores.outbox),
            confirms: Mutex::default(),
            refusals: AtomicUsize::new(0),
        });
        Self { world, ledger, opened: AtomicUsize::new(0) }
    }

    /// Commits `count` events, as services do, without handing them over.
    pub(crate) async fn commit(&self, count: usize) -> Vec<Envelope> {
        let mut events = Vec::new();
        for _ in 0..count {
            let n = self.opened.fetch_add(1, Ordering::SeqCst);
            let user = kefu_testkit::build::user(&format!("u{n}"), 0);
            events.extend(self.world.open_as(&user).await.events);
        }
        events
    }

    pub(crate) fn start(&self, lane: Lane, capacity: usize, handlers: &[Arc<Recorder>]) -> Running {
        self.start_with(BusBuilder::new(), lane, capacity, handlers)
    }

    pub(crate) fn start_with(
        &self,
        mut builder: BusBuilder,
        lane: Lane,
        capacity: usize,
        handlers: &[Arc<Recorder>],
    ) -> Running {
        for handler in handlers {
            builder = builder.handler(handler.name, lane, capacity);
        }
        let (bus, runner) = builder.build();
        let handlers: Vec<_> =
            handlers.iter().map(|handler| Arc::clone(handler) as Arc<dyn Handler>).collect();
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let outbox = Arc::clone(&self.ledger) as Arc<dyn Outbox>;
        let clock = Arc::clone(&self.world.clock) as Arc<dyn Clock>;
        runner.start(&handlers, &outbox, &clock, &tracker, &stop);
        Running { bus, tracker, stop }
    }

    pub(crate) async fn unconfirmed(&self) -> Vec<EventId> {
        self.world.outbox().await.iter().map(|envelope| envelope.id).collect()
    }
}

impl Running {
    pub(crate) async fn shut_down(self) {
        self.stop.cancel();
        self.tracker.close();
        drop(self.bus);
        self.tracker.wait().await;
    }
}

pub(crate) fn ids(events: &[Envelope]) -> Vec<EventId> {
    events.iter().map(|envelope| envelope.id).collect()
}

/// Lets everything happen that can happen within `by`.
pub(crate) async fn pass(by: Duration) {
    // tidy: time is paused
    tokio::time::sleep(by).await;
}

/// Lets everything happen that needs no time.
pub(crate) async fn idle() {
    pass(Duration::from_millis(1)).await;
}
