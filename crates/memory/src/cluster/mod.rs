//! The ports between nodes, for several desks in one process: what tests of a cluster stand on.

mod board;
mod bus;
mod tasks;

pub use board::MemoryBoard;
pub use bus::{MemoryNodeBus, MemoryNodes};
pub use tasks::MemoryTaskLeases;
