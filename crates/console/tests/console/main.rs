//! The rules of notes, canned replies, figures and pages, without a store.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod canned;
mod figures;
mod note;
mod page;
