//! The embedded profile: SQLite, this process's memory and a folder behind the ports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kefu_core::{Clock, NodeName, SnowflakeIds, SystemClock, TraceId, WorkerId};
use kefu_desk::{Desk, DeskConfig, DeskParts};
use kefu_gateway::{Gateway, GatewayConfig, GatewayParts, Registry};
use kefu_memory::MemoryCoordination;
use kefu_messaging::{BatchConfig, RetrySchedule};
use kefu_sqlite::{SqliteOptions, SqliteStore};
use kefu_upload::{LinkSigner, ObjectBlobStore, Uploads};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::readiness::StoreReadiness;
use crate::signing_secret::SigningSecret;
use crate::telemetry::Metrics;

/// A running house, without a listener.
pub(crate) struct Embedded {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: SqliteStore,
    /// Connections, requests and the use cases they began.
    pub(crate) requests: TaskTracker,
    /// The desk's own tasks, which requests wait for.
    pub(crate) desk_tasks: TaskTracker,
    /// Cancelled when shutdown begins.
    pub(crate) closing: CancellationToken,
    /// Cancelled when no request is left.
    pub(crate) stop: CancellationToken,
}

impl Embedded {
    /// Opens everything in `data_dir`, and starts the desk with its sweeps.
    pub(crate) async fn start(
        config: &Config,
        secret: &SigningSecret,
        demo: bool,
        metrics: Metrics,
    ) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let node = NodeName::new(&config.node.name).context("node.name")?;
        // What no single frame causes carries the node's own name as its trace.
        let trace = TraceId::new(&config.node.name).context("node.name")?;
        let path = database_path(&config.data_dir);
        let store = SqliteStore::open(&path, SqliteOptions::default())
            .await
            .with_context(|| format!("cannot open {}", path.display()))?;
        let stores = store.stores();
        let highest = stores.messages.highest_id().await.context("cannot read the database")?;
        let signer =
            LinkSigner::new(secret.as_bytes(), Duration::from_secs(config.upload.link_ttl_s))?;
        let blobs = ObjectBlobStore::local(&config.upload.dir)
            .with_context(|| format!("upload.dir: {}", config.upload.dir.display()))?;
        let uploads =
            Uploads::new(Arc::new(blobs), Arc::clone(&stores.uploads), signer, Arc::clone(&clock));
        let uploads = Arc::new(uploads.with_max_bytes(config.upload.max_bytes));
        let registry = Registry::new(config.limits.outbound_bytes, Arc::clone(&uploads));
        let (requests, desk_tasks) = (TaskTracker::new(), TaskTracker::new());
        let (closing, stop) = (CancellationToken::new(), CancellationToken::new());
        let auth = secret.authenticator(config, Arc::clone(&clock))?;
        let ready = Arc::new(StoreReadiness { messages: Arc::clone(&stores.messages) });

        let parts = DeskParts {
            stores,
            coordination: MemoryCoordination::new(Arc::clone(&clock)).ports(),
            cluster: None,
            connections: Arc::<Registry>::clone(&registry),
            uploads,
            ids: Arc::new(SnowflakeIds::new(Arc::clone(&clock), WorkerId::default(), highest)),
            clock,
            node: node.clone(),
            interceptors: Vec::new(),
            config: desk_config(config),
        };
        let desk = Desk::start(parts, &trace, &desk_tasks, &stop);
        // Before the first connection: no agent's connection outlived the last process (P4).
        desk.start_up(&trace).await.context("cannot read the agents")?;
        desk.start_node(&desk_tasks, &stop);
        desk.start_sweeps(&trace, &desk_tasks, &stop);
        desk_tasks.spawn(metrics.clone().upkeep(stop.clone()));
        let gateway = Gateway::new(GatewayParts {
            desk,
            registry: Arc::clone(&registry),
            auth,
            config: gateway_config(config, demo),
            node,
            metrics: metrics.renderer(),
            ready,
            tracker: requests.clone(),
            closing: closing.clone(),
        });
        Ok(Self { gateway, registry, store, requests, desk_tasks, closing, stop })
    }
}

/// Makes the data folder if it is missing.
pub(crate) fn make_data_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("data_dir: cannot make the folder {}", path.display()))
}

/// Where the embedded database lies.
pub(crate) fn database_path(data_dir: &Path) -> PathBuf {
    data_dir.join("kefu.db")
}

fn desk_config(config: &Config) -> DeskConfig {
    let retries = config.delivery.retry_ms.iter().copied().map(Duration::from_millis).collect();
    DeskConfig {
        presence_ttl: Duration::from_millis(config.presence.ttl_ms),
        agent_grace: Duration::from_millis(config.presence.agent_grace_ms),
        retries: RetrySchedule::new(retries),
        max_chars: config.messaging.max_chars,
        resume_page: config.messaging.resume_page,
        max_sessions: config.assignment.max_sessions,
        assign_lock: Duration::from_millis(config.assignment.lock_ms),
        ageing_per_minute: config.queue.ageing_per_minute,
        connections_per_person: config.limits.connections_per_person,
        outbox_keep: kefu_core::limit::OUTBOX_KEEP,
        batch: BatchConfig::default(),
    }
}

fn gateway_config(config: &Config, demo: bool) -> GatewayConfig {
    GatewayConfig {
        allowed_origins: config.server.allowed_origins.clone(),
        trusted_proxies: config.server.trusted_proxies.clone(),
        demo,
        heartbeat: Duration::from_millis(config.presence.heartbeat_ms),
        presence_ttl: Duration::from_millis(config.presence.ttl_ms),
        frame_bytes: config.limits.frame_bytes,
        max_chars: config.messaging.max_chars,
        resume_page: config.messaging.resume_page,
        upload_bytes: config.upload.max_bytes,
        message_burst: config.limits.message_burst,
        messages_per_second: config.limits.messages_per_second,
        connects_per_minute: config.limits.connects_per_minute,
        uploads_per_minute: config.limits.uploads_per_minute,
        outbound_bytes: config.limits.outbound_bytes,
        in_flight: config.limits.in_flight,
        shutdown_grace: Duration::from_millis(config.server.shutdown_grace_ms),
    }
}
