//! The rules of a session, each case citing its number.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod access;
mod common;
mod opening;
mod rating;
mod transition;
