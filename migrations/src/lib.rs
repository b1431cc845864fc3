#![doc = include_str!("../README.md")]

mod dialect;
mod m20261130_000001_chat;
mod m20261130_000002_cluster;
mod m20261201_000003_console;
mod m20261201_000004_search;
mod runner;

pub use runner::{HISTORY_TABLE, MigrateError, SchemaState, migrate, schema_state};
