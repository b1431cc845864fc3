//! Values that a type alone cannot refuse.

use std::fmt::Display;
use std::ops::RangeInclusive;

use kefu_core::{NodeName, limit};

use super::{AuthConfig, Config, ConfigError, DemoMode, Profile};

/// Bytes of a signing secret: the least that HS256 asks for (RFC 7518, 3.2).
pub(super) const MIN_SECRET_BYTES: usize = 32;

const DAY_MS: u64 = 86_400_000;

/// Everything that is wrong, in one answer.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    problems.check_profile(config);
    problems.check_server(config);
    problems.check_auth(&config.auth, config.demo.enabled);
    problems.check_rules(config);
    problems.check_limits(config);
    if problems.0.is_empty() { Ok(()) } else { Err(ConfigError::Refused(problems.0)) }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, key: &str, problem: impl Display) {
        self.0.push(format!("{key}: {problem}"));
    }

    fn within<T: Copy + PartialOrd + Display>(
        &mut self,
        key: &str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            let (least, most) = range.into_inner();
            self.add(key, format_args!("must be from {least} to {most}, not {value}"));
        }
    }

    /// What the processes of a cluster share must be said to each of them.
    fn check_profile(&mut self, config: &Config) {
        match config.profile {
            Profile::Embedded => {}
            Profile::Cluster => {
                let needed = [
                    ("postgres.url", config.postgres.url.is_none()),
                    ("redis.url", config.redis.url.is_none()),
                    ("auth.secret", config.auth.secret.is_none()),
                ];
                for (key, _) in needed.iter().filter(|(_, missing)| *missing) {
                    self.add(key, "must be set when profile is \"cluster\"");
                }
            }
        }
    }

    fn check_server(&mut self, config: &Config) {
        if config.data_dir.as_os_str().is_empty() {
            self.add("data_dir", "must name a folder");
        }
        if NodeName::new(&config.node.name).is_err() {
            self.add("node.name", "must be 1 to 64 characters of A-Z a-z 0-9 _ . -");
        }
        for origin in &config.server.allowed_origins {
            if !is_origin(origin) {
                self.add(
                    "server.allowed_origins",
                    format_args!(
                        "{origin:?} must be \"*\" or like https://example.com, without a path"
                    ),
                );
            }
        }
        self.within("server.shutdown_grace_ms", config.server.shutdown_grace_ms, 100..=600_000);
    }

    fn check_auth(&mut self, auth: &AuthConfig, demo: DemoMode) {
        if auth.secret.as_ref().is_some_and(|s| s.reveal().len() < MIN_SECRET_BYTES) {
            let key = if auth.secret_file.is_some() { "auth.secret_file" } else { "auth.secret" };
            self.add(key, format_args!("must have at least {MIN_SECRET_BYTES} bytes"));
        }
        if auth.jwks_file.is_some() && demo == DemoMode::True {
            self.add("demo.enabled", "cannot be true with auth.jwks_file: nobody here can sign");
        }
    }

    fn check_rules(&mut self, config: &Config) {
        let presence = &config.presence;
        self.within("presence.heartbeat_ms", presence.heartbeat_ms, 100..=600_000);
        self.within("presence.ttl_ms", presence.ttl_ms, 200..=600_000);
        if presence.heartbeat_ms >= presence.ttl_ms {
            self.add("presence.heartbeat_ms", "must be less than presence.ttl_ms");
        }
        self.within("presence.agent_grace_ms", presence.agent_grace_ms, 0..=DAY_MS);
        self.within("delivery.retry_ms (number of pauses)", config.delivery.retry_ms.len(), 1..=10);
        for pause in &config.delivery.retry_ms {
            self.within("delivery.retry_ms", *pause, 10..=600_000);
        }
        // The constraints of the product (CC-03, CC-08, CC-09, CC-18) may be narrowed, not widened.
        let (chars, page) = (config.messaging.max_chars, config.messaging.resume_page);
        self.within("messaging.max_chars", chars, 1..=limit::MAX_MESSAGE_CHARS);
        self.within("messaging.resume_page", page, 1..=limit::PAGE);
        let sessions = config.assignment.max_sessions;
        self.within("assignment.max_sessions", sessions, 1..=limit::MAX_SESSIONS_PER_AGENT);
        self.within("assignment.lock_ms", config.assignment.lock_ms, 100..=60_000);
        self.within("outbox.keep_hours", config.outbox.keep_hours, 1..=8_760);
        let ageing = config.queue.ageing_per_minute;
        self.within("queue.ageing_per_minute", ageing, 0..=1_000_000_000);
        self.within("upload.max_bytes", config.upload.max_bytes, 1..=limit::MAX_UPLOAD_BYTES);
        self.within("upload.link_ttl_s", config.upload.link_ttl_s, 60..=604_800);
    }

    fn check_limits(&mut self, config: &Config) {
        let limits = &config.limits;
        self.within("limits.connections_per_person", limits.connections_per_person, 1..=1_000);
        self.within("limits.message_burst", limits.message_burst, 1..=1_000_000);
        self.within("limits.messages_per_second", limits.messages_per_second, 1..=1_000_000);
        self.within("limits.connects_per_minute", limits.connects_per_minute, 1..=10_000_000);
        self.within("limits.uploads_per_minute", limits.uploads_per_minute, 1..=1_000_000);
        self.within("limits.outbound_bytes", limits.outbound_bytes, 65_536..=67_108_864);
        self.within("limits.frame_bytes", limits.frame_bytes, 4_096..=1_048_576);
        self.within("limits.in_flight", limits.in_flight, 1..=1_000_000);
        self.within("postgres.max_connections", config.postgres.max_connections, 1..=1_000);
        self.within("postgres.statement_cache", config.postgres.statement_cache, 0..=10_000);
        if config.redis.key_prefix.is_empty() {
            self.add("redis.key_prefix", "must not be empty");
        }
    }
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    text == "*" || host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
}
