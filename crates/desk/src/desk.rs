//! The desk itself: built once from its parts, then one method per use case (in the other files).

use std::sync::Arc;

use kefu_assignment::{Assignments, Drain};
use kefu_core::{Clock, IdSource, NodeName, TraceId};
use kefu_events::{Backlog, BusBuilder, EventSource, Handler, Interceptor, Lane};
use kefu_messaging::{Delivery, Pusher, Receipts, Sends};
use kefu_upload::Uploads;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board::Board;
use crate::copies::Copies;
use crate::fanout::{DrainOnEvent, Fanout};
use crate::forward::{Forward, Routed};
use crate::held::HeldTasks;
use crate::news::News;
use crate::turns::{Fenced, Turns};
use crate::typing::Typing;
use crate::watch::{Watched, Watchers};
use crate::{Cluster, Connections, Coordination, DeskConfig, Stores};

/// Room for events on their way to the fan-out; beyond it they are read back from the outbox.
const FANOUT_QUEUE: usize = 8_192;
/// Room for events on their way to the drain; what overflows is covered by the sweep (Z3).
const DRAIN_QUEUE: usize = 1_024;

/// Room for events on their way to the copies; what overflows is covered by the reconciler (A1).
const COPIES_QUEUE: usize = 1_024;

/// What a desk is built from.
pub struct DeskParts {
    /// What must survive.
    pub stores: Stores,
    /// What may be lost.
    pub coordination: Coordination,
    /// The other processes on the same stores, if there are any.
    pub cluster: Option<Cluster>,
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
    pub(crate) cluster: Option<Cluster>,
    pub(crate) forward: Option<Forward>,
    pub(crate) copies: Option<Arc<Copies>>,
    pub(crate) fanout: Arc<Fanout>,
    pub(crate) connections: Arc<dyn Connections>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) assignments: Assignments,
    pub(crate) drain: Arc<Drain>,
    pub(crate) sends: Sends,
    pub(crate) receipts: Arc<Receipts>,
    pub(crate) delivery: Delivery,
    pub(crate) news: Arc<News>,
    pub(crate) typing: Typing,
    /// To who has a session by then.
    pub(crate) pusher: Arc<dyn Pusher>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) board: Arc<Board>,
    pub(crate) turns: Arc<Turns>,
    /// Words of other nodes may have been missed though the wire was whole.
    pub(crate) missed: Notify,
    pub(crate) held: HeldTasks,
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
            cluster,
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
        if cluster.is_some() {
            builder = builder
                .backlog(Backlog::Of(node.clone()))
                .handler(Forward::NAME, Lane::Durable, FANOUT_QUEUE)
                .handler(Copies::NAME, Lane::BestEffort, COPIES_QUEUE);
        }
        for interceptor in interceptors {
            builder = builder.interceptor(interceptor);
        }
        let (bus, runner) = builder.build();
        let watchers = Arc::new(Watchers::new(Arc::clone(&connections)));
        let board = Board::new(stores.clone(), Arc::clone(&connections), Arc::clone(&clock));
        let board = Arc::new(board);
        tracker.spawn(Arc::clone(&board).run(stop.clone()));
        let forward = cluster.as_ref().map(|cluster| {
            let (presence, nodes) = (&coordination.presence, &cluster.nodes);
            let watchers = Arc::clone(&watchers);
            Forward::new(node.clone(), Arc::clone(presence), Arc::clone(nodes), watchers)
        });
        let pusher: Arc<dyn Pusher> = match &forward {
            Some(forward) => {
                tracker.spawn(forward.clone().run(stop.clone()));
                Arc::new(Routed::start(Arc::clone(&connections), forward.clone(), tracker, stop))
            }
            None => Arc::clone(&connections) as _,
        };
        let pusher: Arc<dyn Pusher> =
            Arc::new(Watched { inner: pusher, watchers: Arc::clone(&watchers) });
        let source = EventSource::new(Arc::clone(&clock), Arc::clone(&ids), bus, node);
        let turns = Arc::new(Turns::new());
        let fenced: Arc<dyn Pusher> =
            Arc::new(Fenced::new(Arc::clone(&pusher), Arc::clone(&turns)));
        let (delivery, receipts) = Delivery::start(
            Arc::clone(&stores.messages),
            Arc::clone(&stores.sessions),
            Arc::clone(&fenced),
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
        let news = News::start(&stores, &connections, &pusher, &clock, &ids, tracker, stop);
        let typing = Typing::start(&pusher, &turns, tracker, stop);
        let fanout = Arc::new(Fanout::new(
            stores.clone(),
            Arc::clone(&connections),
            delivery.clone(),
            Arc::clone(&news),
            typing.clone(),
            Arc::clone(&turns),
            (Arc::clone(&watchers), Arc::clone(&board)),
        ));
        let mut handlers: Vec<Arc<dyn Handler>> =
            vec![fanout.clone(), Arc::new(DrainOnEvent::new(Arc::clone(&drain)))];
        let copies = cluster
            .as_ref()
            .map(|cluster| Arc::new(Copies::new(stores.clone(), Arc::clone(&cluster.board))));
        if let Some(forward) = &forward {
            handlers.push(Arc::new(forward.clone()));
        }
        if let Some(copies) = &copies {
            handlers.push(copies.clone());
            tracker.spawn(Arc::clone(copies).run(stop.clone()));
        }
        runner.start(&handlers, &stores.outbox, &clock, tracker, stop);
        Arc::new(Self {
            stores,
            coordination,
            cluster,
            forward,
            copies,
            fanout,
            connections,
            uploads,
            assignments,
            drain,
            sends,
            receipts,
            delivery,
            news,
            typing,
            pusher: fenced,
            watchers,
            board,
            turns,
            missed: Notify::new(),
            held: HeldTasks::default(),
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
