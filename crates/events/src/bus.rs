//! The in-process bus: one bounded queue per handler, interceptors in front.
//!
//! A durable handler that falls behind goes over to reading the outbox ([`crate::relay`]); a
//! best-effort one loses the event and a metric says so. Publishing never waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use kefu_core::{Clock, NodeName, StoreFault};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::relay::{Confirmer, Relay, best_effort};
use crate::{Envelope, Outbox};

/// What becomes of an event that finds a handler's queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Read back from the outbox, in order; the event is confirmed only once handled.
    Durable,
    /// Dropped, and counted in `kefu_bus_dropped_total`.
    BestEffort,
}

/// Which unconfirmed events of the outbox the durable handlers of a process look after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backlog {
    /// All of them: there is no other process.
    Whole,
    /// Those that this node decided. What a node leaves behind is for the leased relay (N2).
    Of(NodeName),
}

impl Backlog {
    pub(crate) fn holds(&self, envelope: &Envelope) -> bool {
        match self {
            Self::Whole => true,
            Self::Of(node) => envelope.source == *node,
        }
    }
}

/// Whether an intercepted event goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// To the handlers.
    On,
    /// No further. Its outbox row stays unconfirmed.
    Stop,
}

/// Sees every event before the handlers do; again if it is read back from the outbox.
pub trait Interceptor: Send + Sync {
    /// Must be quick: it runs in the publisher's task. The same event must get the same answer.
    fn intercept(&self, envelope: &Envelope) -> Pass;
}

/// Why a handler could not deal with an event. A durable handler is given it again.
#[derive(Debug, thiserror::Error)]
#[error("handler failed: {reason}")]
pub struct HandlerError {
    /// For the log.
    pub reason: String,
}

impl From<StoreFault> for HandlerError {
    fn from(fault: StoreFault) -> Self {
        Self { reason: fault.to_string() }
    }
}

/// Reacts to events. Must be idempotent by event id: durable handlers see an event at least once.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Names the handler in metrics and logs.
    fn name(&self) -> &'static str;

    /// Deals with several events at once, in order, where that is cheaper and cannot fail; `false` when
    /// it does not, and each is given to [`Self::handle`].
    async fn handle_together(&self, _: &[Arc<Envelope>]) -> bool {
        false
    }

    /// Deals with one event.
    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError>;
}

struct Slot {
    name: &'static str,
    lane: Lane,
    queue: mpsc::Sender<Arc<Envelope>>,
    behind: Arc<Behind>,
}

/// Set while a durable handler reads the outbox instead of its queue.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    flag: AtomicBool,
    wake: Notify,
}

impl Behind {
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    pub(crate) fn clear(&self) {
        self.flag.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }
}

/// Hands committed events to the handlers of this process. Cheap to clone.
#[derive(Clone)]
pub struct Bus {
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    slots: Arc<[Slot]>,
}

impl Bus {
    /// A bus nobody listens to, for embedders that need no events.
    #[must_use]
    pub fn silent() -> Self {
        Self { interceptors: Arc::from([]), slots: Arc::from([]) }
    }

    /// Hands over events that are already committed, in commit order. Never waits, never fails.
    pub fn publish(&self, envelopes: impl IntoIterator<Item = Envelope>) {
        for envelope in envelopes {
            if passes(&self.interceptors, &envelope) {
                self.offer(&Arc::new(envelope));
            }
        }
    }

    /// Has the durable handlers read the outbox if `fault` is a commit whose answer was lost: its
    /// events may be there although nobody will hand them over.
    pub fn recover(&self, fault: &StoreFault) {
        match fault {
            StoreFault::Indeterminate { .. } => {}
            StoreFault::Unavailable { .. } | StoreFault::Internal { .. } => return,
        }
        for slot in self.slots.iter().filter(|slot| slot.lane == Lane::Durable) {
            slot.behind.set();
        }
    }

    fn offer(&self, envelope: &Arc<Envelope>) {
        for slot in self.slots.iter() {
            // Behind a backlog the queue stays closed, else a newer event would overtake it.
            if slot.behind.is_set() {
                continue;
            }
            match slot.queue.try_send(Arc::clone(envelope)) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => slot.overflow(),
                Err(TrySendError::Closed(_)) => {
                    tracing::debug!(handler = slot.name, "event left to the outbox at shutdown");
                }
            }
        }
    }
}

pub(crate) fn passes(interceptors: &[Arc<dyn Interceptor>], envelope: &Envelope) -> bool {
    interceptors.iter().all(|interceptor| interceptor.intercept(envelope) == Pass::On)
}

impl Slot {
    fn overflow(&self) {
        match self.lane {
            Lane::Durable => {
                metrics::counter!("kefu_bus_overflow_total", "handler" => self.name).increment(1);
                self.behind.set();
            }
            Lane::BestEffort => {
                metrics::counter!("kefu_bus_dropped_total", "handler" => self.name).increment(1);
            }
        }
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots.iter().map(|slot| slot.name)).finish()
    }
}

/// Collects interceptors and handlers, then starts their tasks.
///
/// Built in two steps because handlers usually need services that publish on the bus themselves.
pub struct BusBuilder {
    interceptors: Vec<Arc<dyn Interceptor>>,
    slots: Vec<Slot>,
    pending: Vec<Pending>,
    backlog: Backlog,
}

struct Pending {
    name: &'static str,
    lane: Lane,
    queue: mpsc::Receiver<Arc<Envelope>>,
    behind: Arc<Behind>,
}

impl BusBuilder {
    /// An empty bus.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            interceptors: Vec::new(),
            slots: Vec::new(),
            pending: Vec::new(),
            backlog: Backlog::Whole,
        }
    }

    /// Leaves unconfirmed events of other processes to them.
    #[must_use]
    pub fn backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = backlog;
        self
    }

    /// Adds an interceptor; they run in the order added.
    #[must_use]
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// Reserves a queue of `capacity` events for the handler that will be called `name`.
    #[must_use]
    pub fn handler(mut self, name: &'static str, lane: Lane, capacity: usize) -> Self {
        let (sender, receiver) = mpsc::channel(capacity);
        let behind = Arc::new(Behind::default());
        self.slots.push(Slot { name, lane, queue: sender, behind: Arc::clone(&behind) });
        self.pending.push(Pending { name, lane, queue: receiver, behind });
        self
    }

    /// The bus to publish on, and what starts its handlers.
    #[must_use]
    pub fn build(self) -> (Bus, BusRunner) {
        let interceptors: Arc<[_]> = self.interceptors.into();
        let bus = Bus { interceptors: Arc::clone(&interceptors), slots: self.slots.into() };
        (bus, BusRunner { interceptors, pending: self.pending, backlog: self.backlog })
    }
}

impl Default for BusBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// The reserved queues, waiting for their handlers.
pub struct BusRunner {
    interceptors: Arc<[Arc<dyn Interceptor>]>,
    pending: Vec<Pending>,
    backlog: Backlog,
}

impl BusRunner {
    /// Starts one task per handler on `tracker`; they finish what is queued after `stop`.
    ///
    /// A reserved queue whose handler is missing from `handlers` is closed: its durable events stay
    /// in the outbox.
    pub fn start(
        self,
        handlers: &[Arc<dyn Handler>],
        outbox: &Arc<dyn Outbox>,
        clock: &Arc<dyn Clock>,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) {
        let durable = self.pending.iter().filter(|slot| slot.lane == Lane::Durable).count();
        let confirmer = Confirmer::start(durable, Arc::clone(outbox), Arc::clone(clock), tracker);
        let interceptors = self.interceptors;
        for slot in self.pending {
            let Some(handler) = handlers.iter().find(|h| h.name() == slot.name).map(Arc::clone)
            else {
                continue;
            };
            match slot.lane {
                Lane::Durable => {
                    let relay = Relay {
                        handler,
                        interceptors: Arc::clone(&interceptors),
                        outbox: Arc::clone(outbox),
                        backlog: self.backlog.clone(),
                        confirmer: confirmer.clone(),
                        behind: slot.behind,
                        stop: stop.clone(),
                    };
                    tracker.spawn(relay.run(slot.queue));
                }
                Lane::BestEffort => {
                    tracker.spawn(best_effort(handler, slot.queue, stop.clone()));
                }
            }
        }
    }
}
