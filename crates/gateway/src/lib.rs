//! The WebSocket server as a library: connection task, frame handlers, fan-out, uploads, HTTP API.
//!
//! It holds no rule and no adapter: rules live in the domain crates behind [`kefu_desk::Desk`],
//! adapters are chosen by `kefu-app`. [`router`] is everything a listener needs.

mod address;
pub mod auth;
mod config;
mod error;
mod http;
mod limits;
mod registry;
mod state;
mod ws;

pub use config::GatewayConfig;
pub use http::{answer_readyz, router};
pub use registry::Registry;
pub use state::{Gateway, GatewayParts, Readiness};
