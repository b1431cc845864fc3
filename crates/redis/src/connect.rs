//! Connections: every setting the client library leaves open is made here.

use std::time::Duration;

use fred::prelude::{
    Blocking, Builder, Config, ConnectionConfig, Error, PerformanceConfig, ReconnectPolicy,
    ServerConfig, TcpConfig,
};
use fred::types::RespVersion;
use fred::types::config::{ClusterDiscoveryPolicy, UnresponsiveConfig};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::Connection;
use crate::key::has_hash_tag;
use crate::{ConnectError, RedisOptions};

/// Commands that may wait on one connection; beyond them callers are refused at once.
const QUEUED_COMMANDS: usize = 4_096;

/// Messages that may wait for the receive loop; beyond them it hears of a gap and resyncs.
const QUEUED_MESSAGES: usize = 8_192;

/// First and longest wait between attempts to connect, and what chance adds to each, so that nodes
/// that lost Redis together do not come back together. The longest is short: an attempt costs next to
/// nothing, and until one succeeds people on two nodes do not hear each other.
const RECONNECT: (u32, u32, u32) = (20, 400, 100);

/// An open question this old means that the connection is dead, though no one closed it.
pub(crate) const UNRESPONSIVE: Duration = Duration::from_secs(3);

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
pub(crate) fn commands(
    builder: &Builder,
    options: &RedisOptions,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Vec<Connection>, ConnectError> {
    let connections = (0..options.connections).map(|_| {
        let client = builder.build().map_err(|_| ConnectError::Url)?;
        Ok(Connection::keep("command", client, tracker, stop.clone()))
    });
    connections.collect()
}

/// Waits until every connection answers, for one time limit at most; says whether they did.
pub(crate) async fn wait_for_answers(connections: &[Connection], limit: Duration) -> bool {
    let all = async {
        for connection in connections {
            connection.wait_for_answer().await?;
        }
        Ok::<_, Error>(())
    };
    timeout(limit, all).await.is_ok_and(|answer| answer.is_ok())
}
