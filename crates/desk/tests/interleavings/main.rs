//! The batcher and the drain under schedules chosen by shuttle: the production code, driven by tasks
//! that may be switched at every call of a port, and for the drain's turn at every use of its flag
//! and gate. The connection registry has its own in `crates/gateway/src/registry`.

#![expect(clippy::expect_used, reason = "a panic is how a scene fails")]

mod batcher;
mod drain;
mod explore;
mod sync;
mod turns;

/// The production source itself, with the flag and the gate of [`sync`].
#[path = "../../../assignment/src/turn.rs"]
mod turn;
