//! What every handler of the gateway shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kefu_core::{ConnId, NodeName, TraceId};
use kefu_desk::Desk;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Authenticator;
use crate::http::UPLOADS_AT_ONCE;
use crate::limits::Limits;
use crate::{GatewayConfig, Registry};

/// What a gateway is built from.
pub struct GatewayParts {
    /// The use cases.
    pub desk: Arc<Desk>,
    /// The connections; the same that the desk pushes through.
    pub registry: Arc<Registry>,
    /// Verifies and, for the demo, mints tokens.
    pub auth: Authenticator,
    /// Settings.
    pub config: GatewayConfig,
    /// This node.
    pub node: NodeName,
    /// Renders `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Answers `/readyz`: `Err` names the part that is missing.
    pub ready: Arc<dyn Readiness>,
    /// Where connection tasks and use cases run, so that shutdown waits for them.
    pub tracker: TaskTracker,
    /// Cancelled when shutdown begins: nothing new is accepted, `/readyz` is red (L3).
    pub closing: CancellationToken,
}

/// Whether the store answers.
#[async_trait::async_trait]
pub trait Readiness: Send + Sync {
    /// `Err` names the missing part, as `/readyz` shows it.
    async fn check(&self) -> Result<(), &'static str>;
}

/// The shared state of all handlers.
pub struct Gateway {
    pub(crate) desk: Arc<Desk>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) auth: Authenticator,
    pub(crate) limits: Limits,
    pub(crate) config: GatewayConfig,
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) ready: Arc<dyn Readiness>,
    pub(crate) tracker: TaskTracker,
    pub(crate) closing: CancellationToken,
    /// One permit per request being worked on (L1).
    pub(crate) budget: Arc<Semaphore>,
    /// One permit per file being received.
    pub(crate) uploads: Arc<Semaphore>,
    node: NodeName,
    next_conn: AtomicU64,
    next_trace: AtomicU64,
    /// Tells the traces of two runs of the same node apart.
    run: u32,
}

impl Gateway {
    /// Builds the shared state.
    #[must_use]
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let GatewayParts { desk, registry, auth, config, node, metrics, ready, tracker, closing } =
            parts;
        Arc::new(Self {
            limits: Limits::new(&config),
            budget: Arc::new(Semaphore::new(config.in_flight)),
            uploads: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)),
            run: rand::random(),
            next_conn: AtomicU64::new(1),
            next_trace: AtomicU64::new(1),
            desk,
            registry,
            auth,
            config,
            metrics,
            ready,
            tracker,
            closing,
            node,
        })
    }

    /// A fresh connection id.
    pub(crate) fn next_conn(&self) -> ConnId {
        ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed))
    }

    /// A fresh trace id: node, run and number, so that a log line finds its frame.
    pub(crate) fn next_trace(&self) -> TraceId {
        let number = self.next_trace.fetch_add(1, Ordering::Relaxed);
        // Built from a node's name, so only its length could be wrong; the number alone never is.
        let named = TraceId::new(format!("{}-{:08x}-{number}", self.node, self.run));
        named.unwrap_or_else(|_| short_trace(number))
    }
}

#[expect(clippy::expect_used, reason = "a decimal number always is a valid id")]
fn short_trace(number: u64) -> TraceId {
    TraceId::new(number.to_string()).expect("digits only")
}
