//! The use cases of a desk over a world in memory, in paused time.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod cluster;
mod common;
mod connect;
mod fault;
mod fence;
mod lock;
mod news;
mod note;
mod people;
mod resume;
mod rules;
mod search;
mod serve;
mod sweep;
mod typing;
