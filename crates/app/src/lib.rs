#![doc = include_str!("../README.md")]

mod accept;
mod cluster;
mod command;
mod config;
mod demo;
mod drainer;
mod embedded;
mod ground;
mod house;
mod lifecycle;
mod readiness;
mod server;
mod signing_secret;
mod telemetry;
mod token;

pub use command::{Command, Failure, run};
pub use config::{
    AssignmentConfig, AuthConfig, Config, ConfigError, DEFAULTS, DeliveryConfig, DemoConfig,
    DemoMode, DrainerConfig, LimitsConfig, LogConfig, LogFormat, MessagingConfig, NodeConfig,
    OutboxConfig, PostgresConfig, PresenceConfig, Profile, QueueConfig, RedisConfig, Secret,
    ServerConfig, UploadConfig,
};
pub use kefu_core::Role;
pub use signing_secret::SigningSecret;
pub use token::TokenRequest;
