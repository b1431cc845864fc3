//! A running gateway without its listener: the desk, its people, and what both stand on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kefu_core::{Clock, SystemClock, TraceId};
use kefu_desk::{Connections, Desk, DeskConfig, DeskParts};
use kefu_gateway::{Gateway, GatewayConfig, GatewayParts, Registry};
use kefu_messaging::{BatchConfig, RetrySchedule};
use kefu_upload::{LinkSigner, ObjectBlobStore, UploadLedger, Uploads};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Profile};
use crate::ground::{Ground, Storage, node_name};
use crate::signing_secret::SigningSecret;
use crate::telemetry::Metrics;

/// A running gateway, without a listener.
pub(crate) struct House {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) storage: Storage,
    /// Connections, requests and the use cases they began.
    pub(crate) requests: TaskTracker,
    /// The desk's own tasks, which requests wait for.
    pub(crate) desk_tasks: TaskTracker,
    /// Cancelled when shutdown begins.
    pub(crate) closing: CancellationToken,
    /// Cancelled when no request is left.
    pub(crate) stop: CancellationToken,
}

impl House {
    /// Opens what the profile says, and starts the desk; a process that is the only one sweeps too.
    pub(crate) async fn start(
        config: &Config,
        secret: &SigningSecret,
        demo: bool,
        metrics: Metrics,
    ) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let node = node_name(config, "gateway")?;
        // What no single frame causes carries the node's own name as its trace.
        let trace = TraceId::new(node.as_str()).context("node.name")?;
        let ground = Ground::open(config, &node, &clock).await?;
        let uploads = uploads(config, secret, &ground.stores.uploads, &clock)?;
        let registry = Registry::new(config.limits.outbound_bytes, Arc::clone(&uploads));
        let (requests, desk_tasks) = (TaskTracker::new(), TaskTracker::new());
        let (closing, stop) = (CancellationToken::new(), CancellationToken::new());
        let auth = secret.authenticator(config, Arc::clone(&clock))?;

        let Ground { stores, coordination, cluster, ids, ready, storage } = ground;
        let parts = DeskParts {
            stores,
            coordination,
            cluster,
            connections: Arc::clone(&registry) as Arc<dyn Connections>,
            uploads,
            ids,
            clock,
            node: node.clone(),
            interceptors: Vec::new(),
            config: desk_config(config),
        };
        let desk = Desk::start(parts, &trace, &desk_tasks, &stop);
        desk.start_node(&desk_tasks, &stop);
        match config.profile {
            Profile::Embedded => {
                // Before the first connection: no agent's connection outlived the last process (P4).
                desk.start_up(&trace).await.context("cannot read the agents")?;
                desk.start_sweeps(&trace, &desk_tasks, &stop);
            }
            // The queue drainers do it.
            Profile::Cluster => {}
        }
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
        Ok(Self { gateway, registry, storage, requests, desk_tasks, closing, stop })
    }
}

/// The images of this installation.
pub(crate) fn uploads(
    config: &Config,
    secret: &SigningSecret,
    ledger: &Arc<dyn UploadLedger>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Uploads>> {
    let life = Duration::from_secs(config.upload.link_ttl_s);
    let signer = LinkSigner::new(secret.as_bytes(), life)?;
    let blobs = ObjectBlobStore::local(&config.upload.dir)
        .with_context(|| format!("upload.dir: {}", config.upload.dir.display()))?;
    let uploads = Uploads::new(Arc::new(blobs), Arc::clone(ledger), signer, Arc::clone(clock));
    Ok(Arc::new(uploads.with_max_bytes(config.upload.max_bytes)))
}

pub(crate) fn desk_config(config: &Config) -> DeskConfig {
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
        outbox_keep: Duration::from_secs(config.outbox.keep_hours * 3_600),
        batch: batch_config(config.profile),
    }
}

/// SQLite has one writer. On PostgreSQL a second batch forms and travels while the first is flushed;
/// more than that buys nothing (`docs/performance.md`).
fn batch_config(profile: Profile) -> BatchConfig {
    let shards = match profile {
        Profile::Embedded => 1,
        Profile::Cluster => 2,
    };
    BatchConfig { shards, ..BatchConfig::default() }
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
