//! The contracts of all ports, stamped on memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::LoadBoard;
use kefu_core::{ManualClock, NodeName};
use kefu_desk::{Coordination, NodeBus, Stores, TaskLeases};
use kefu_memory::{MemoryBoard, MemoryCoordination, MemoryNodes, MemoryTaskLeases, MemoryWorld};
use kefu_testkit::{
    CoordinationHarness, Harness, LoadBoardHarness, NodeBusHarness, TaskLeasesHarness,
};

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

struct MemoryWire(MemoryNodes);

#[async_trait]
impl NodeBusHarness for MemoryWire {
    async fn start() -> Self {
        Self(MemoryNodes::new())
    }

    async fn node(&self, name: &NodeName) -> Arc<dyn NodeBus> {
        self.0.node(name.clone())
    }
}

struct MemoryCopies(Arc<MemoryBoard>);

#[async_trait]
impl LoadBoardHarness for MemoryCopies {
    async fn start() -> Self {
        Self(Arc::new(MemoryBoard::new()))
    }

    fn board(&self) -> Arc<dyn LoadBoard> {
        self.0.clone()
    }
}

struct MemoryTasks {
    clock: Arc<ManualClock>,
    tasks: Arc<MemoryTaskLeases>,
}

#[async_trait]
impl TaskLeasesHarness for MemoryTasks {
    async fn start() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { tasks: Arc::new(MemoryTaskLeases::new(clock.clone())), clock }
    }

    fn tasks(&self) -> Arc<dyn TaskLeases> {
        self.tasks.clone()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

kefu_testkit::store_contract!(MemoryStores);
kefu_testkit::coordination_contract!(MemoryLeases);
kefu_testkit::node_bus_contract!(MemoryWire);
kefu_testkit::load_board_contract!(MemoryCopies);
kefu_testkit::task_leases_contract!(MemoryTasks);
