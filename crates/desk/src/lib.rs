#![doc = include_str!("../README.md")]

mod agents;
mod canned;
mod cluster;
mod config;
mod connect;
mod copies;
mod desk;
mod error;
mod fanout;
mod forward;
mod heal;
mod held;
mod listen;
mod lock;
mod loss;
mod news;
mod note;
mod owners;
mod ports;
mod read;
mod search;
mod serve;
mod sweep;
mod talk;
mod turns;
mod typing;

pub use cluster::{Audience, Cluster, Heard, NodeBus, NodeMessage, Relayed, Task, TaskLeases};
pub use config::DeskConfig;
pub use connect::{ConnectAnswer, ConnectRequest, Intent, OwnedSession, SessionView};
pub use desk::{Desk, DeskParts};
pub use error::DeskError;
pub use news::QueueNews;
pub use ports::{Connections, Coordination, NoConnections, Position, Stores};
pub use search::{ListScope, ListedSession, SessionList};
pub use talk::SendRequest;
