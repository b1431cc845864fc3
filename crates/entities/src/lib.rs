#![doc = include_str!("../README.md")]

pub mod agent;
pub mod assignment;
pub mod canned;
pub mod message;
pub mod note;
pub mod outbox;
pub mod session;
mod unreadable;
pub mod upload;

pub use unreadable::UnreadableRow;
