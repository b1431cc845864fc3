//! What the end-to-end tests share: the real binary as a child process, and a client that speaks the
//! wire in plain JSON, so that nothing of the server's own types hides a mistake in them.

// tidy: an expectation would fail in the one test binary that uses everything.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this module")]
#![expect(
    clippy::expect_used,
    reason = "a test that cannot even mint a token has nothing to go on with"
)]

mod chat;
mod client;
mod house;
mod ledger;
mod server;

pub(crate) use chat::{Chatter, Phase, Progress};
pub(crate) use client::{Client, awake_during};
pub(crate) use house::{ClusterHouse, HouseBuilder, until};
pub(crate) use ledger::{Ledger, Report, Row};
pub(crate) use server::{Server, ServerBuilder};

/// How long a test waits for something that must come. Never reached when the server is right.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// A number from the environment: long forms and repeated seeds are asked for there.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
