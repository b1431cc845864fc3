#![doc = include_str!("../README.md")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: a panic is how a case fails"
)]

pub mod build;
pub mod check;
mod fault;
mod fault_ports;
mod harness;
mod race;
pub mod server;
mod stamp;
pub mod suite;
mod world;

pub use fault::{Flaky, Gate, Late, Slow, Strike};
pub use harness::{
    CoordinationHarness, Harness, LoadBoardHarness, NodeBusHarness, TaskLeasesHarness,
};
pub use race::{race, seeded};
pub use world::{World, stored};
