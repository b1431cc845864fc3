//! The crate from outside: contents, storage, and the service.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod blob_store;
mod sanitize;
mod service;
mod support;
