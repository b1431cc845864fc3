//! The rules of notes and canned replies, without a store.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod canned;
mod note;
