#![doc = include_str!("../README.md")]

pub mod agent;
pub mod assignment;
pub mod message;
pub mod outbox;
pub mod session;
mod unreadable;
pub mod upload;

pub use unreadable::UnreadableRow;
