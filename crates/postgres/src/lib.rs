#![doc = include_str!("../README.md")]

mod agent;
mod append;
mod assignment;
mod bulk;
mod canned;
mod connect;
mod error;
mod guarded;
mod line;
mod message;
mod note;
mod open;
mod outbox;
mod receipt;
mod rows;
mod search;
mod session;
mod task;
mod timer;
mod transaction;
mod upload;
mod worker;

pub use connect::PgOptions;
pub use open::{OpenError, PgStore};
pub use worker::WorkerLease;
