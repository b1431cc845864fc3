//! The use cases that span the other domain crates, without I/O of their own: what gateways and
//! embedders call.

mod ports;

pub use ports::{Coordination, Stores};
