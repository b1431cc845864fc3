//! The crate from outside: contents, storage, and the service.

mod blob_store;
mod sanitize;
mod service;
mod support;
