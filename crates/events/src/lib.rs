#![doc = include_str!("../README.md")]

mod bus;
mod envelope;
mod outbox;
mod recent;
mod relay;
mod source;
mod trace;

pub use bus::{
    Backlog, Bus, BusBuilder, BusRunner, Handler, HandlerError, Interceptor, Lane, Pass,
};
pub use envelope::{Envelope, Event, EventContext, How, RequeueReason, SCHEMA_VERSION};
pub use outbox::Outbox;
pub use recent::Recent;
pub use source::EventSource;
pub use trace::{current_trace, traced, traces};
