//! The rules of assignment and its services over a world in memory.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod agent;
mod common;
mod pass;
mod race;
mod serve;
