#![doc = include_str!("../README.md")]

mod m20261130_000001_chat;
mod runner;

pub use runner::{MigrateError, SchemaState, migrate, schema_state};
