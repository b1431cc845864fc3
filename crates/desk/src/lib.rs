//! The use cases that span the other domain crates, without I/O of their own: what gateways and
//! embedders call.
//!
//! A [`Desk`] is built once from ports ([`Stores`], [`Coordination`], a [`Connections`]) and then
//! answers one method per use case. What others must be told is never told by the use case itself:
//! it is committed as an event, and [`fanout`](crate) tells them (A2).

mod agents;
mod config;
mod connect;
mod desk;
mod error;
mod fanout;
mod heal;
mod news;
mod ports;
mod read;
mod serve;
mod sweep;
mod talk;
mod typing;

pub use config::DeskConfig;
pub use connect::{ConnectAnswer, ConnectRequest, Intent, OwnedSession, SessionView};
pub use desk::{Desk, DeskParts};
pub use error::DeskError;
pub use news::QueueNews;
pub use ports::{Connections, Coordination, Position, Stores};
pub use talk::SendRequest;
