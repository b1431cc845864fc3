#![doc = include_str!("../README.md")]

mod cluster;
mod coordination;
mod lock;
mod presence;
mod store;
mod table;
mod world;

pub use cluster::{MemoryBoard, MemoryNodeBus, MemoryNodes, MemoryTaskLeases};
pub use coordination::MemoryCoordination;
pub use lock::MemoryAssignLock;
pub use presence::MemoryPresence;
pub use world::MemoryWorld;
