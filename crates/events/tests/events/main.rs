//! The bus and its relay in paused time: nothing lost, nothing confirmed before it was handled.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod common;
mod confirm;
mod overflow;
mod restart;
