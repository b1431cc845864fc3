//! The HTTP API over a world in memory, without a listener.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it did not expect"
)]

mod admission;
mod demo;
mod history;
mod image;
mod site;
mod support;
mod upload;
