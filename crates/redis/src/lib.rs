#![doc = include_str!("../README.md")]

mod board;
mod bus;
mod connect;
mod connection;
mod coordination;
mod error;
mod key;
mod link;
mod lock;
mod options;
mod presence;
mod script;
mod subscription;
mod wire;

pub use coordination::RedisCoordination;
pub use options::{ConnectError, RedisOptions};
