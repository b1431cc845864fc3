//! The queue drainer: what one process does for all, in a process that serves nobody directly.

use std::future::pending;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use kefu_core::{Clock, SystemClock, TraceId};
use kefu_desk::{Desk, DeskParts, NoConnections};
use kefu_gateway::{Readiness, answer_readyz};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accept;
use crate::command::print;
use crate::config::Config;
use crate::embedded::make_data_dir;
use crate::ground::{Ground, node_name};
use crate::house::{desk_config, uploads};
use crate::lifecycle::Signals;
use crate::signing_secret::SigningSecret;
use crate::telemetry::Metrics;

/// Sweeps until the first signal, then ends in order; a second signal ends at once.
pub(crate) async fn sweep(
    config: &Config,
    metrics: Metrics,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let listener = match config.drainer.listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    make_data_dir(&config.data_dir)?;
    let secret = SigningSecret::load(config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let node = node_name(config, "drainer")?;
    let trace = TraceId::new(node.as_str()).context("node.name")?;
    let ground = Ground::open(config, &node, &clock).await?;
    let uploads = uploads(config, &secret, &ground.stores.uploads, &clock)?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let Ground { stores, coordination, cluster, ids, ready, storage } = ground;
    let parts = DeskParts {
        stores,
        coordination,
        cluster,
        connections: Arc::new(NoConnections),
        uploads,
        ids,
        clock,
        node,
        interceptors: Vec::new(),
        config: desk_config(config),
    };
    let desk = Desk::start(parts, &trace, &tasks, &stop);
    desk.start_sweeps(&trace, &tasks, &stop);
    tasks.spawn(metrics.clone().upkeep(stop.clone()));
    let watched = Watched { ready, metrics, stop: stop.clone() };
    let answering = async {
        match listener {
            Some(listener) => {
                accept::serve(listener, router(watched), accept::HEAD_WITHIN, stop.clone()).await;
            }
            None => pending().await,
        }
    };
    tracing::info!(?address, "sweeping");
    announce(address, out);
    tokio::select! {
        () = signals.next() => {}
        _ = answering => bail!("the listener has stopped"),
    }
    let ending = async {
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        // Only now: a sweep that is still under way would take its task again.
        desk.leave_tasks().await;
        storage.close().await;
    };
    tokio::select! {
        ended = timeout(Duration::from_millis(config.server.shutdown_grace_ms), ending) => {
            ended.context("did not finish in time")
        }
        () = signals.next() => bail!("stopped at once by a second signal"),
    }
}

/// Scripts wait for this line, so it comes last.
fn announce(address: Option<SocketAddr>, out: &mut (dyn Write + Send)) {
    let line = match address {
        Some(address) => format!("sweeping; metrics: http://{address}/metrics"),
        None => "sweeping".to_owned(),
    };
    if let Err(error) = print(out, &line) {
        tracing::warn!(%error, "nobody reads stdout");
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("drainer.listen: cannot listen on {address}"))
}

/// What watches over the process asks.
#[derive(Clone)]
struct Watched {
    ready: Arc<dyn Readiness>,
    metrics: Metrics,
    stop: CancellationToken,
}

fn router(watched: Watched) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route(
            "/readyz",
            get(async |State(Watched { ready, stop, .. }): State<Watched>| {
                answer_readyz(ready.as_ref(), &stop).await
            }),
        )
        .route(
            "/metrics",
            get(async |State(watched): State<Watched>| (watched.metrics.renderer())()),
        )
        .with_state(watched)
}
