//! The rules of messages, the group-commit writer and delivery in paused time.

mod append;
mod batch;
mod common;
mod delivery;
mod receipt;
