//! The desk itself: built once from its parts, then one method per use case (in the other files).

use std::sync::Arc;

use kefu_assignment::{Assignments, Drain};
use kefu_core::{Clock, IdSource, NodeName, TraceId};
use kefu_events::{BusBuilder, EventSource, Handler, Interceptor, Lane};
use kefu_messaging::{Delivery, Receipts, Sends};
use kefu_upload::Uploads;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fanout::{DrainOnEvent, Fanout};
use crate::news::News;
use crate::typing::Typing;
use crate::{Connections, Coordination, DeskConfig, Stores};

/// Room for events on their way to the fan-out; beyond it they are read back from the outbox.
const FANOUT_QUEUE: usize = 8_192;
/// Room for events on their way to the drain; what overflows is covered by the sweep (Z3).
const DRAIN_QUEUE: usize = 1_024;

/// What a desk is built from.
pub struct DeskParts {
    /// What must survive.
    pub stores: Stores,
    /// What may be lost.
    pub coordination: Coordination,
    /// The people connected to this node.
    pub connections: Arc<dyn Connections>,
    /// Images.
    pub uploads: Arc<Uploads>,
    /// Wall and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// The id generator of this process.
    pub ids: Arc<dyn IdSource>,
    /// This node.
    pub node: NodeName,
    /// Sees every event before the desk's own handlers.
    pub interceptors: Vec<Arc<dyn Interceptor>>,
    /// Settings.
    pub config: DeskConfig,
}

/// All use cases of the house over one set of ports.
pub struct Desk {
    pub(crate) stores: Stores,
    pub(crate) coordination: Coordination,
    pub(crate) connections: Arc<dyn Connections>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) assignments: Assignments,
    pub(crate) drain: Arc<Drain>,
    pub(crate) sends: Sends,
    pub(crate) receipts: Arc<Receipts>,
    pub(crate) delivery: Delivery,
    pub(crate) news: Arc<News>,
    pub(crate) typing: Typing,
    pub(crate) source: EventSource,
    pub(crate) config: DeskConfig,
}

impl Desk {
    /// Builds the desk and starts its tasks on `tracker`. After `stop` they take nothing new, finish
    /// what was accepted, and end.
    ///
    /// `trace` ties together what no single frame causes: group commits, the drain, the sweep.
    #[must_use]
    pub fn start(
        parts: DeskParts,
        trace: &TraceId,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let DeskParts {
            stores,
            coordination,
            connections,
            uploads,
            clock,
            ids,
            node,
            interceptors,
            config,
        } = parts;
        let mut builder = BusBuilder::new()
            .handler(Fanout::NAME, Lane::Durable, FANOUT_QUEUE)
            .handler(DrainOnEvent::NAME, Lane::BestEffort, DRAIN_QUEUE);
        for interceptor in interceptors {
            builder = builder.interceptor(interceptor);
        }
        let (bus, runner) = builder.build();
        let source = EventSource::new(Arc::clone(&clock), Arc::clone(&ids), bus, node);
        let (delivery, receipts) = Delivery::start(
            Arc::clone(&stores.messages),
            Arc::clone(&stores.sessions),
            Arc::clone(&connections) as Arc<dyn kefu_messaging::Pusher>,
            config.retries.clone(),
            config.batch,
            tracker,
            stop,
        );
        let sends = Sends::start(
            Arc::clone(&stores.messages),
            source.clone(),
            trace.clone(),
            config.batch,
            tracker,
            stop,
        );
        let drain = Arc::new(Drain::new(
            Arc::clone(&stores.line),
            Arc::clone(&stores.agents),
            Arc::clone(&stores.assignments),
            source.clone(),
            trace.clone(),
        ));
        let assignments = Assignments::new(
            Arc::clone(&stores.assignments),
            Arc::clone(&stores.agents),
            Arc::clone(&stores.sessions),
            source.clone(),
            config.max_sessions,
        );
        let presence = &coordination.presence;
        let news = News::start(&stores, &connections, &clock, &ids, presence, tracker, stop);
        let typing = Typing::start(&connections, tracker, stop);
        let fanout = Fanout::new(
            stores.clone(),
            Arc::clone(&connections),
            delivery.clone(),
            Arc::clone(&news),
            typing.clone(),
        );
        let handlers: [Arc<dyn Handler>; 2] =
            [Arc::new(fanout), Arc::new(DrainOnEvent::new(Arc::clone(&drain)))];
        runner.start(&handlers, &stores.outbox, &clock, tracker, stop);
        Arc::new(Self {
            stores,
            coordination,
            connections,
            uploads,
            assignments,
            drain,
            sends,
            receipts,
            delivery,
            news,
            typing,
            source,
            config,
        })
    }

    /// The settings this desk was built with.
    #[must_use]
    pub const fn config(&self) -> &DeskConfig {
        &self.config
    }

    /// The images of this desk: receiving a stream, opening a signed link, signing one.
    #[must_use]
    pub const fn uploads(&self) -> &Arc<Uploads> {
        &self.uploads
    }

    /// The clock this desk was built with.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        self.source.clock()
    }
}
