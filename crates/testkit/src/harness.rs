//! How an adapter shows itself to the suites.

use std::time::Duration;

use async_trait::async_trait;
use kefu_desk::{Coordination, Stores};

/// One private backend for the SQL ports. Every case starts its own.
#[async_trait]
pub trait Harness: Send + Sync + Sized + 'static {
    /// An empty backend that nothing else uses.
    async fn start() -> Self;

    /// Its ports. All handles of one backend see the same data, also across calls.
    fn stores(&self) -> Stores;

    /// The same data behind fresh handles, as after a restart of the process. Handles given out
    /// before are not used any more.
    async fn restart(&mut self);
}

/// One private backend for what may be lost (A1): leases and locks, in virtual time.
#[async_trait]
pub trait CoordinationHarness: Send + Sync + Sized + 'static {
    /// An empty backend that nothing else uses.
    async fn start() -> Self;

    /// Its ports.
    fn coordination(&self) -> Coordination;

    /// Lets `by` pass for leases and locks.
    async fn advance(&self, by: Duration);
}
