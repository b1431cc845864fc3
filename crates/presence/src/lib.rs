//! Who is there. Two facts are kept apart (Z7): *availability* is what an agent chose and is stored
//! in SQL; *liveness* is whether any connection of theirs holds a lease, and reaches SQL only on a
//! transition.

mod agent;
mod lease;

pub use agent::{Agent, AgentDirectory, Availability};
pub use lease::{Lease, PresenceStore};
