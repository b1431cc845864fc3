//! What an operator may set, and where from: compiled-in defaults < file < environment.

mod check;
mod error;
mod layer;
mod secret;
mod unset;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use error::ConfigError;
pub use secret::Secret;

use layer::{Layers, Origin};

/// The compiled-in defaults, with a comment on every key.
pub const DEFAULTS: &str = include_str!("config/default.toml");

/// The effective settings. `docs/configuration.md` says what each key means.
///
/// Serialised, secrets are redacted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which adapters serve the ports.
    pub profile: Profile,
    /// The folder of everything that must survive.
    pub data_dir: PathBuf,
    /// The listener.
    pub server: ServerConfig,
    /// The demo pages.
    pub demo: DemoConfig,
    /// Whose tokens are believed.
    pub auth: AuthConfig,
    /// This process.
    pub node: NodeConfig,
    /// Logs.
    pub log: LogConfig,
    /// The database of the cluster profile.
    pub postgres: PostgresConfig,
    /// The coordination of the cluster profile.
    pub redis: RedisConfig,
    /// Heartbeats and leases.
    pub presence: PresenceConfig,
    /// Push retries.
    pub delivery: DeliveryConfig,
    /// Messages.
    pub messaging: MessagingConfig,
    /// Assignment.
    pub assignment: AssignmentConfig,
    /// The waiting line.
    pub queue: QueueConfig,
    /// Committed events.
    pub outbox: OutboxConfig,
    /// Images.
    pub upload: UploadConfig,
    /// The process without visitors.
    pub drainer: DrainerConfig,
    /// Protection against too much of anything.
    pub limits: LimitsConfig,
}

/// `profile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// One process on SQLite.
    Embedded,
    /// Several processes on PostgreSQL and Redis.
    Cluster,
}

/// `server.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// Origins of pages that may connect, besides the server's own; `*` allows all.
    pub allowed_origins: Vec<String>,
    /// Networks of proxies whose `X-Forwarded-For` is believed (L2).
    pub trusted_proxies: Vec<IpNet>,
    /// Milliseconds from SIGTERM to the end of the process (L3).
    pub shutdown_grace_ms: u64,
}

/// `demo.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoConfig {
    /// Whether pages may ask for tokens.
    pub enabled: DemoMode,
}

/// `demo.enabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DemoMode {
    /// Only with a loopback listener and the self-made secret.
    Auto,
    /// Always.
    True,
    /// Never.
    False,
}

/// `auth.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// Signs tokens (HS256) and links; made on first start when not set.
    #[serde(with = "unset")]
    pub secret: Option<Secret>,
    /// Where [`Self::secret`] was read from.
    #[serde(with = "unset")]
    pub secret_file: Option<PathBuf>,
    /// Public keys that verify tokens instead of the secret.
    #[serde(with = "unset")]
    pub jwks_file: Option<PathBuf>,
}

/// `node.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// The name in logs, traces and events.
    pub name: String,
}

/// `log.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// How a line looks.
    pub format: LogFormat,
}

/// `log.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `postgres.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// With user and password.
    #[serde(with = "unset")]
    pub url: Option<Secret>,
    /// Where [`Self::url`] was read from.
    #[serde(with = "unset")]
    pub url_file: Option<PathBuf>,
    /// Connections of this process.
    pub max_connections: u32,
    /// Prepared statements kept per connection; 0 behind a pooler that keeps none.
    pub statement_cache: usize,
}

/// `redis.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// With user and password.
    #[serde(with = "unset")]
    pub url: Option<Secret>,
    /// Where [`Self::url`] was read from.
    #[serde(with = "unset")]
    pub url_file: Option<PathBuf>,
    /// Begins every key.
    pub key_prefix: String,
}

/// `presence.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresenceConfig {
    /// Milliseconds between the heartbeats that clients are asked for (CC-10).
    pub heartbeat_ms: u64,
    /// Milliseconds of silence after which a connection is gone (CC-11, P1).
    pub ttl_ms: u64,
    /// Milliseconds after which a gone agent's sessions are requeued; 0 is off (Z7).
    pub agent_grace_ms: u64,
}

/// `delivery.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryConfig {
    /// Milliseconds between pushes of an unacknowledged message (CC-06, M3).
    pub retry_ms: Vec<u64>,
}

/// `messaging.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagingConfig {
    /// Scalar values in a text message (CC-08, M1).
    pub max_chars: usize,
    /// Messages in one page (CC-09, M4).
    pub resume_page: u32,
}

/// `assignment.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssignmentConfig {
    /// Sessions one agent may hold (CC-03, Z1).
    pub max_sessions: u32,
    /// Milliseconds that the lock of Z4 lives (CC-02).
    pub lock_ms: u64,
}

/// `queue.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Minor units of balance per minute waited (Q1).
    pub ageing_per_minute: i64,
}

/// `outbox.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboxConfig {
    /// Hours that confirmed events stay for other systems to read (N2).
    pub keep_hours: u64,
}

/// `drainer.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainerConfig {
    /// Where `queue-drainer` answers `/healthz`, `/readyz` and `/metrics`.
    #[serde(with = "unset")]
    pub listen: Option<SocketAddr>,
}

/// `upload.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadConfig {
    /// Bytes of one file (CC-18).
    pub max_bytes: u64,
    /// The folder of the day folders; after loading it is always set.
    pub dir: PathBuf,
    /// Seconds that a link lives (U1).
    pub link_ttl_s: u64,
}

/// `limits.*`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Connections of one person (L2).
    pub connections_per_person: usize,
    /// Messages of one person at once (L2).
    pub message_burst: u32,
    /// Messages of one person per second, once the burst is used up (L2).
    pub messages_per_second: u32,
    /// Connects per minute from one address (L2).
    pub connects_per_minute: u32,
    /// Uploads per minute of one person (L2).
    pub uploads_per_minute: u32,
    /// Bytes waiting for one connection (L1).
    pub outbound_bytes: usize,
    /// Bytes of one frame.
    pub frame_bytes: usize,
    /// Requests at once in this process (L1).
    pub in_flight: usize,
}

impl Config {
    /// Puts the layers together, reads the secrets that lie in files, and checks every value.
    ///
    /// Of `environment` only names that begin with `KEFU__` matter, and each of those must be a key.
    ///
    /// # Errors
    /// [`ConfigError`] names the key, and never shows a secret.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Layers::defaults()?;
        if let Some(file) = file {
            let origin = Origin::File(file.to_owned());
            let text = std::fs::read_to_string(file)
                .map_err(|source| ConfigError::Unreadable { what: origin.to_string(), source })?;
            layers.add_text(&origin, &text)?;
        }
        layers.add_environment(environment)?;
        let mut config: Self = layers.into_typed()?;
        config.read_secret_files()?;
        if config.upload.dir.as_os_str().is_empty() {
            config.upload.dir = config.data_dir.join("public/uploads/chat");
        }
        check::check(&config)?;
        Ok(config)
    }

    /// The effective settings as TOML, secrets redacted.
    ///
    /// # Errors
    /// [`ConfigError::Unprintable`] for a path that is not Unicode.
    pub fn to_redacted_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self).map_err(|error| ConfigError::Unprintable(error.to_string()))
    }

    fn read_secret_files(&mut self) -> Result<(), ConfigError> {
        let Self { auth, postgres, redis, .. } = self;
        let twins = [
            ("auth.secret_file", &auth.secret_file, &mut auth.secret),
            ("postgres.url_file", &postgres.url_file, &mut postgres.url),
            ("redis.url_file", &redis.url_file, &mut redis.url),
        ];
        for (key, path, secret) in twins {
            if let Some(path) = path {
                *secret = Some(Secret::read(key, path)?);
            }
        }
        Ok(())
    }
}
