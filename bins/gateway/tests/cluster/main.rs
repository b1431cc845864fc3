//! Several gateways and drainers as one: real processes, real sockets, real PostgreSQL and Redis, and
//! what happens to them.
//!
//! The suite runs short forms; `cargo xtask show cluster-…`, `show race` and `show spread` set the
//! environment variables named in each file. `KEFU_SEED` repeats what was left to chance.

#![expect(clippy::print_stdout, reason = "the figures are what these tests are run for")]

#[path = "../support/mod.rs"]
mod support;

mod actors;
mod copies;
mod database;
mod drainer;
mod freeze;
mod limit;
mod load;
mod node;
mod race;
mod redis;
mod spread;
mod supervise;
mod talk;

use anyhow::{Context, Result};
use serde_json::Value;

/// The session of a `chat.connected`.
fn session_id(connected: &Value) -> Result<String> {
    Ok(connected["sessionId"].as_str().context("a session")?.to_owned())
}
