//! The drain over memory (Z2, Z3): arrivals and an end among passes, switched at every port call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use kefu_assignment::{AssignmentDecision, AssignmentStore, DecisionRecord, Drain, Scope, Verdict};
use kefu_core::{AdminId, IdSource, ManualClock, SessionId, StoreFault, Timestamp};
use kefu_memory::MemoryWorld;
use kefu_presence::{Agent, AgentDirectory};
use kefu_queue::{Line, Place, WaitingLine};
use kefu_testkit::{World, build};
use shuttle::future::{block_on, spawn, yield_now};

use crate::explore::{holds, is_caught};

const SCHEDULES: usize = 3_000;
const ARRIVALS: usize = 3;

/// The ports of one line. Whoever calls one while another call is under way passes beside a pass.
struct Ports {
    world: World,
    busy: AtomicBool,
}

impl Ports {
    async fn call<T>(&self, work: impl Future<Output = T> + Send) -> T {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "two passes at once");
        yield_now().await;
        let answer = work.await;
        yield_now().await;
        self.busy.store(false, Ordering::SeqCst);
        answer
    }

    fn drain(self: &Arc<Self>) -> Arc<Drain> {
        let (line, agents, store) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        Arc::new(Drain::new(line, agents, store, self.world.source(), build::trace()))
    }
}

#[async_trait]
impl WaitingLine for Ports {
    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        self.call(self.world.stores.line.front(limit)).await
    }

    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault> {
        self.call(self.world.stores.line.place(session)).await
    }
}

#[async_trait]
impl AgentDirectory for Ports {
    async fn find(&self, admin: &AdminId) -> Result<Option<Agent>, StoreFault> {
        self.call(self.world.stores.agents.find(admin)).await
    }

    async fn list_online(&self) -> Result<Vec<Agent>, StoreFault> {
        self.call(self.world.stores.agents.list_online()).await
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        self.call(self.world.stores.agents.list_eligible(limit)).await
    }

    async fn list_live(&self) -> Result<Vec<Agent>, StoreFault> {
        self.call(self.world.stores.agents.list_live()).await
    }

    async fn list_gone(&self, before: Timestamp) -> Result<Vec<Agent>, StoreFault> {
        self.call(self.world.stores.agents.list_gone(before)).await
    }

    async fn list_after(
        &self,
        after: Option<&AdminId>,
        limit: u32,
    ) -> Result<Vec<Agent>, StoreFault> {
        self.call(self.world.stores.agents.list_after(after, limit)).await
    }
}

#[async_trait]
impl AssignmentStore for Ports {
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        self.call(self.world.stores.assignments.transact(scope, decide, ids)).await
    }

    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault> {
        self.call(self.world.stores.assignments.list_records(session)).await
    }
}

/// Room for three, one place of it taken; three arrive, and who is served leaves.
fn scene(one_drain: bool) {
    block_on(async move {
        let world = World::new(MemoryWorld::new(Arc::new(ManualClock::default())).stores());
        world.agent("a", 2).await;
        world.agent("b", 1).await;
        let first = world.open("first", 0).await;
        assert_eq!(world.drain().await, 1);

        let ports = Arc::new(Ports { world: world.clone(), busy: AtomicBool::new(false) });
        let shared = ports.drain();
        let drain = || if one_drain { Arc::clone(&shared) } else { ports.drain() };
        let mut tasks = Vec::new();
        for number in 0..ARRIVALS {
            let (world, drain) = (world.clone(), drain());
            tasks.push(spawn(async move {
                world.open(&format!("u{number}"), 0).await;
                yield_now().await;
                drain.run().await.expect("drained")
            }));
        }
        let (leaving, after) = (world.clone(), drain());
        tasks.push(spawn(async move {
            leaving.end_by_user(&first).await;
            yield_now().await;
            after.run().await.expect("drained")
        }));
        let mut assigned = 0;
        for task in tasks {
            assigned += task.await.expect("ran");
        }
        let line = world.stores.line.front(64).await.expect("memory");
        assert!(line.sessions.is_empty(), "somebody waits although there is room");
        assert_eq!(assigned, ARRIVALS, "assigned and counted differ");
    });
}

#[test]
fn nobody_waits_with_room_and_passes_never_meet() {
    holds("nobody_waits_with_room_and_passes_never_meet", SCHEDULES, || scene(true));
}

#[test]
fn a_drain_for_each_caller_is_caught() {
    is_caught("two passes at once", || scene(false));
}
