//! What every decision of one process draws on, in one value.

use std::sync::Arc;

use kefu_core::{Clock, IdSource, NodeName, StoreFault, TraceId};

use crate::{Bus, Envelope, EventContext};

/// A process as a source of events: its time, its ids, its name, and the bus its events go to once
/// they are committed. Cheap to clone; every service of a process is built with the same one.
#[derive(Clone, Debug)]
pub struct EventSource {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    bus: Bus,
    node: NodeName,
}

impl EventSource {
    /// Bundles the parts.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, bus: Bus, node: NodeName) -> Self {
        Self { clock, ids, bus, node }
    }

    /// The context of a decision made here and now.
    #[must_use]
    pub fn context(&self, trace_id: TraceId) -> EventContext {
        EventContext { now: self.clock.now(), source: self.node.clone(), trace_id }
    }

    /// Wall and monotonic time.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The id generator of this process.
    #[must_use]
    pub fn ids(&self) -> &dyn IdSource {
        self.ids.as_ref()
    }

    /// This node.
    #[must_use]
    pub const fn node(&self) -> &NodeName {
        &self.node
    }

    /// Hands over committed events, as [`Bus::publish`].
    pub fn publish(&self, envelopes: impl IntoIterator<Item = Envelope>) {
        self.bus.publish(envelopes);
    }

    /// Has events of a commit with unknown outcome read back, as [`Bus::recover`].
    pub fn recover(&self, fault: &StoreFault) {
        self.bus.recover(fault);
    }
}
