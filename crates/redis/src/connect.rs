//! Connections: every setting the client library leaves open is made here.

use std::time::Duration;

use fred::prelude::{
    Builder, ClientLike, Config, Error, EventInterface, Pool, ReconnectPolicy, Server,
};
use fred::types::RespVersion;
use fred::types::config::{
    Blocking, ClusterDiscoveryPolicy, ConnectionConfig, PerformanceConfig, ServerConfig, TcpConfig,
    UnresponsiveConfig,
};
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::key::has_hash_tag;
use crate::{ConnectError, RedisOptions};

/// Commands that may wait on one connection; beyond them callers are refused at once.
const QUEUED_COMMANDS: usize = 4_096;

/// Messages that may wait for the receive loop; beyond them it hears of a gap and resyncs.
const QUEUED_MESSAGES: usize = 8_192;

/// First and longest wait between attempts to connect, and what chance adds to each, so that nodes
/// that lost Redis together do not come back together.
const RECONNECT: (u32, u32, u32) = (20, 2_000, 100);

/// An open question this old means that the connection is dead, though no one closed it.
const UNRESPONSIVE: Duration = Duration::from_secs(3);

/// How long closing may take before the connection is just dropped.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Before a client that gave up is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// What all clients of a node are made from.
pub(crate) fn builder(options: &RedisOptions) -> Result<Builder, ConnectError> {
    let config = config(options)?;
    if options.connections == 0 {
        return Err(ConnectError::NoConnections);
    }
    let mut builder = Builder::from_config(config);
    builder.set_connection_config(connection(options));
    builder.set_performance_config(PerformanceConfig {
        default_command_timeout: options.command_timeout,
        max_feed_count: 200,
        broadcast_channel_capacity: QUEUED_MESSAGES,
    });
    builder.set_policy(policy());
    Ok(builder)
}

fn config(options: &RedisOptions) -> Result<Config, ConnectError> {
    let known = ["redis://", "redis-cluster://"];
    if !known.iter().any(|scheme| options.url.starts_with(scheme)) {
        return Err(ConnectError::Url);
    }
    // The library's own words may repeat the URL with its password.
    let mut config = Config::from_url(&options.url).map_err(|_| ConnectError::Url)?;
    if let ServerConfig::Clustered { policy, .. } = &mut config.server {
        if !has_hash_tag(&options.key_prefix) {
            return Err(ConnectError::PrefixWithoutHashTag);
        }
        *policy = ClusterDiscoveryPolicy::ConfigEndpoint;
    }
    // A first attempt that fails is an attempt like any other: chat starts without Redis (N5).
    config.fail_fast = false;
    config.blocking = Blocking::Block;
    // A subscribed connection answers PING only so.
    config.version = RespVersion::RESP3;
    Ok(config)
}

fn connection(options: &RedisOptions) -> ConnectionConfig {
    ConnectionConfig {
        connection_timeout: options.command_timeout * 2,
        internal_command_timeout: options.command_timeout * 2,
        cluster_cache_update_delay: Duration::from_millis(50),
        // Written once and never again by itself: a caller that wants more asks more.
        max_command_attempts: 1,
        max_redirections: 5,
        unresponsive: UnresponsiveConfig {
            max_timeout: Some(UNRESPONSIVE),
            interval: UNRESPONSIVE / 4,
        },
        reconnect_on_auth_error: true,
        auto_client_setname: false,
        max_command_buffer_len: QUEUED_COMMANDS,
        disable_cluster_health_check: false,
        tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
    }
}

fn policy() -> ReconnectPolicy {
    let (min_delay, max_delay, jitter) = RECONNECT;
    ReconnectPolicy::Exponential {
        attempts: 0,
        // For ever.
        max_attempts: 0,
        min_delay,
        max_delay,
        base: 2,
        jitter,
    }
}

/// The connections for commands, kept up until `stop`.
pub(crate) fn pool(
    builder: &Builder,
    options: &RedisOptions,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Pool, ConnectError> {
    let pool = builder.build_pool(options.connections).map_err(|_| ConnectError::NoConnections)?;
    for client in pool.clients() {
        keep_connected("command", client.clone(), tracker, stop.clone());
    }
    Ok(pool)
}

/// Waits until every connection answers, for one time limit at most; says whether they did.
pub(crate) async fn wait_for_answer(pool: &Pool, limit: Duration) -> bool {
    let all = async {
        for client in pool.clients() {
            client.ping::<String>(None).await?;
        }
        Ok::<_, Error>(())
    };
    timeout(limit, all).await.is_ok_and(|answer| answer.is_ok())
}

/// Drives one client until `stop`, counting how often it came back. A client that gives up by itself
/// (a queue so full that the order to reconnect found no room, a server that was no cluster for a
/// moment) is started again.
pub(crate) fn keep_connected<C>(
    role: &'static str,
    client: C,
    tracker: &TaskTracker,
    stop: CancellationToken,
) where
    C: ClientLike + EventInterface + Send + Sync + 'static,
{
    let connects = client.reconnect_rx();
    tracker.spawn(async move {
        let counting = count_reconnects(role, connects);
        let driving = drive(role, &client);
        tokio::select! {
            () = stop.cancelled() => {}
            () = driving => {}
            () = counting => {}
        }
        let _ = timeout(CLOSE_LIMIT, client.quit()).await;
    });
}

async fn drive<C: ClientLike>(role: &'static str, client: &C) {
    loop {
        let end = client.connect().await;
        let error = end.map(Result::err).unwrap_or_default();
        tracing::error!(role, ?error, "redis client gave up, starting it again");
        sleep(RESTART_PAUSE).await;
    }
}

async fn count_reconnects(role: &'static str, mut connects: broadcast::Receiver<Server>) {
    let mut was_connected = false;
    loop {
        match connects.recv().await {
            Ok(_) if was_connected => {
                metrics::counter!("kefu_redis_reconnects_total", "role" => role).increment(1);
                tracing::info!(role, "redis is back");
            }
            Ok(_) => was_connected = true,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            // Only after the client was closed for good.
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}
