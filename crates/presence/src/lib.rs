#![doc = include_str!("../README.md")]

mod agent;
mod lease;

pub use agent::{Agent, AgentDirectory, Availability};
pub use lease::{Lease, PresenceStore};
