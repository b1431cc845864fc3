//! What the end-to-end tests share: the real binary as a child process, and a client that speaks the
//! wire in plain JSON, so that nothing of the server's own types hides a mistake in them.

// tidy: an expectation would fail in the one test binary that uses everything.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this module")]
#![expect(
    clippy::expect_used,
    reason = "a test that cannot even mint a token has nothing to go on with"
)]

mod client;
mod server;

pub(crate) use client::Client;
pub(crate) use server::{Server, ServerBuilder};

/// How long a test waits for something that must come. Never reached when the server is right.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
