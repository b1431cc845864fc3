//! The adapter on real servers: one for all tests of this binary, one that refuses steps over two
//! slots, and some that a test kills.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it did not expect"
)]

mod board;
mod bus;
mod contract;
mod faults;
mod harness;
mod presence;
