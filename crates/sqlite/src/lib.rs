#![doc = include_str!("../README.md")]

mod agent;
mod append;
mod assignment;
mod canned;
mod connect;
mod error;
mod line;
mod message;
mod note;
mod open;
mod outbox;
mod receipt;
mod rows;
mod search;
mod session;
mod upload;
mod writer;

pub use open::{OpenError, SqliteOptions, SqliteStore};
