//! The rules of messages, the group-commit writer and delivery in paused time.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod append;
mod batch;
mod common;
mod delivery;
mod receipt;
mod told;
