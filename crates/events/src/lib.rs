//! What happened, told after it was committed: the event envelope, the in-process bus and the
//! [`Outbox`] port behind it.
//!
//! Events are written in the transaction that made them true (N2). The committing task then hands
//! them to the [`Bus`] at once (fast path); what the bus could not place is read back from the outbox.

mod bus;
mod envelope;
mod outbox;
mod relay;

pub use bus::{Bus, BusBuilder, BusRunner, Handler, HandlerError, Interceptor, Lane, Pass};
pub use envelope::{Envelope, Event, EventContext, How, RequeueReason, SCHEMA_VERSION};
pub use outbox::Outbox;
