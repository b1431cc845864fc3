//! What every adapter is held to: one contract suite per port, generic over a [`Harness`] and
//! stamped by [`store_contract!`] and [`coordination_contract!`]; with builders, fault-injecting
//! wrappers and a ledger checker for tests of anything built from ports.
//!
//! This crate knows no adapter. An adapter's `tests/contract.rs` stamps the suites on itself.

#![cfg_attr(
    not(test),
    expect(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "test support: a panic is how a case fails"
    )
)]

pub mod build;
pub mod check;
mod fault;
mod fault_ports;
mod harness;
mod race;
mod stamp;
pub mod suite;
mod world;

pub use fault::{Flaky, Gate, Slow, Strike};
pub use harness::{CoordinationHarness, Harness};
pub use race::{race, seeded};
pub use world::{World, stored};
