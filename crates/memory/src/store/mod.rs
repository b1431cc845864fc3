//! The SQL ports on a [`MemoryWorld`](crate::MemoryWorld), one file a port. One call is one hold of
//! the mutex.

mod agent;
mod assignment;
mod canned;
mod line;
mod message;
mod note;
mod outbox;
mod search;
mod session;
mod upload;
