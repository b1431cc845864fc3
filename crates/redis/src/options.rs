//! Where Redis is, and why one cannot begin with it.

use std::fmt;
use std::time::Duration;

use kefu_core::NodeName;

/// Where Redis is and how to use it.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://[user:password@]host[:port][/database]`, or `redis-cluster://…` for a cluster.
    pub url: String,
    /// In front of every key and channel. One install is one prefix. On a cluster it needs a hash tag
    /// (`{cs}`), so that all keys share a slot.
    pub key_prefix: String,
    /// This node: what others address, and what it does not hear from itself.
    pub node: NodeName,
    /// Connections for commands. They are pipelined: few serve many callers.
    pub connections: usize,
    /// How long a command may take before its caller goes on without it.
    pub command_timeout: Duration,
}

impl RedisOptions {
    /// The usual settings for one node.
    #[must_use]
    pub fn new(url: impl Into<String>, node: NodeName) -> Self {
        Self {
            url: url.into(),
            key_prefix: "cs".to_owned(),
            node,
            connections: 2,
            command_timeout: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for RedisOptions {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("key_prefix", &self.key_prefix)
            .field("node", &self.node)
            .field("connections", &self.connections)
            .field("command_timeout", &self.command_timeout)
            .finish_non_exhaustive()
    }
}

/// Settings that can never work. That Redis is away is not one of them: kefu starts without it (N5).
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither `redis://` nor `redis-cluster://` with a host; TLS is not built in.
    #[error("redis.url is not a redis:// or redis-cluster:// address")]
    Url,
    /// A script would touch keys in several slots of a cluster.
    #[error("redis.key_prefix needs a hash tag such as {{cs}} on a cluster")]
    PrefixWithoutHashTag,
    /// Nothing to send a command over.
    #[error("redis.connections must be at least 1")]
    NoConnections,
}
