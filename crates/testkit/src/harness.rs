//! How an adapter shows itself to the suites.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::LoadBoard;
use kefu_core::NodeName;
use kefu_desk::{Coordination, NodeBus, Stores, TaskLeases};

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

/// One private wire between nodes.
#[async_trait]
pub trait NodeBusHarness: Send + Sync + Sized + 'static {
    /// A wire that nothing else uses.
    async fn start() -> Self;

    /// One node's end of it.
    async fn node(&self, name: &NodeName) -> Arc<dyn NodeBus>;
}

/// One private board of copies.
#[async_trait]
pub trait LoadBoardHarness: Send + Sync + Sized + 'static {
    /// An empty board that nothing else uses.
    async fn start() -> Self;

    /// The board.
    fn board(&self) -> Arc<dyn LoadBoard>;
}

/// Private leases of tasks, in virtual time.
#[async_trait]
pub trait TaskLeasesHarness: Send + Sync + Sized + 'static {
    /// Leases that nobody holds.
    async fn start() -> Self;

    /// The leases.
    fn tasks(&self) -> Arc<dyn TaskLeases>;

    /// Lets `by` pass for them.
    async fn advance(&self, by: Duration);
}
