//! What an operator may tune of a gateway. Keys are those of `protocol.md`, "Running it".

use std::time::Duration;

use ipnet::IpNet;

/// Settings of the sockets and the HTTP API.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// `server.allowed_origins`: browsers from elsewhere are refused. The server's own origin is
    /// always allowed; `*` allows all.
    pub allowed_origins: Vec<String>,
    /// `server.trusted_proxies`: whose `X-Forwarded-For` is believed (L2).
    pub trusted_proxies: Vec<IpNet>,
    /// Whether the demo pages and `POST /demo/token` exist; `app` resolves `demo.enabled`.
    pub demo: bool,
    /// `presence.heartbeat_ms`.
    pub heartbeat: Duration,
    /// `presence.ttl_ms`: silence after which a connection is closed with 4003 (P1).
    pub presence_ttl: Duration,
    /// Bytes of one frame; beyond it the connection is closed with 1009.
    pub frame_bytes: usize,
    /// `messaging.max_chars`.
    pub max_chars: usize,
    /// `messaging.resume_page`.
    pub resume_page: u32,
    /// `upload.max_bytes`.
    pub upload_bytes: u64,
    /// `limits.message_burst`, per person.
    pub message_burst: u32,
    /// `limits.messages_per_second`, per person.
    pub messages_per_second: u32,
    /// `limits.connects_per_minute`, per address.
    pub connects_per_minute: u32,
    /// `limits.uploads_per_minute`, per person.
    pub uploads_per_minute: u32,
    /// `limits.outbound_bytes`, per connection (L1).
    pub outbound_bytes: usize,
    /// `limits.in_flight`: requests being worked on in this process (L1).
    pub in_flight: usize,
    /// `server.shutdown_grace_ms` (L3).
    pub shutdown_grace: Duration,
}
