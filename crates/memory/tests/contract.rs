//! The contracts of all ports, stamped on memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::ManualClock;
use kefu_desk::{Coordination, Stores};
use kefu_memory::{MemoryCoordination, MemoryWorld};
use kefu_testkit::{CoordinationHarness, Harness};

struct MemoryStores(MemoryWorld);

#[async_trait]
impl Harness for MemoryStores {
    async fn start() -> Self {
        Self(MemoryWorld::new(Arc::new(ManualClock::default())))
    }

    fn stores(&self) -> Stores {
        self.0.stores()
    }

    /// The world stands for the database, which outlives the process: only the handles are new.
    async fn restart(&mut self) {
        self.0 = self.0.clone();
    }
}

struct MemoryLeases {
    clock: Arc<ManualClock>,
    coordination: MemoryCoordination,
}

#[async_trait]
impl CoordinationHarness for MemoryLeases {
    async fn start() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { coordination: MemoryCoordination::new(clock.clone()), clock }
    }

    fn coordination(&self) -> Coordination {
        self.coordination.ports()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

kefu_testkit::store_contract!(MemoryStores);
kefu_testkit::coordination_contract!(MemoryLeases);
