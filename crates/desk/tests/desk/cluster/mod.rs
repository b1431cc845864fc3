//! Several desks over one world: nodes that serve people, and drainers that serve nobody.

mod ack;
mod board;
mod death;
mod limit;
mod looks;
mod note;
mod notice;
mod order;
mod retry;
mod talk;
mod tasks;
mod trace;
mod watch;
mod wire;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::LoadBoard;
use kefu_core::{Clock, NodeName, SessionId, SnowflakeIds, StoreFault, WorkerId};
use kefu_desk::{Cluster, Connections, Heard, NodeBus, NodeMessage, Stores, Task, TaskLeases};
use kefu_events::{Envelope, Event, EventContext, Interceptor, Pass};
use kefu_memory::{MemoryBoard, MemoryCoordination, MemoryNodes, MemoryTaskLeases, MemoryWorld};
use kefu_messaging::{Message, Push};
use kefu_testkit::build::{admin, trace};
use tokio::sync::mpsc;

use crate::common::{Ground, PausedClock, Scene, idle};

/// One world that any number of desks join.
struct House {
    clock: Arc<dyn Clock>,
    stores: Stores,
    coordination: MemoryCoordination,
    wire: MemoryNodes,
    board: Arc<MemoryBoard>,
    tasks: Arc<Watched>,
    workers: Mutex<u16>,
}

/// A desk that serves people, with what a test does to it.
struct Node {
    scene: Scene,
    mute: Arc<Mute>,
}

impl House {
    fn build() -> Self {
        let clock = PausedClock::start();
        let leases = MemoryTaskLeases::new(Arc::clone(&clock));
        Self {
            stores: MemoryWorld::new(Arc::clone(&clock)).stores(),
            coordination: MemoryCoordination::new(Arc::clone(&clock)),
            wire: MemoryNodes::new(),
            board: Arc::new(MemoryBoard::new()),
            tasks: Arc::new(Watched { leases, held: Mutex::default() }),
            workers: Mutex::new(0),
            clock,
        }
    }

    /// A gateway joins.
    async fn node(&self, name: &str) -> Node {
        self.node_over(name, self.stores.clone()).await
    }

    /// A gateway over altered stores.
    async fn node_over(&self, name: &str, stores: Stores) -> Node {
        let mute = Arc::new(Mute::default());
        let scene = self.desk(name, stores, vec![Arc::clone(&mute) as Arc<dyn Interceptor>]);
        scene.people.follow();
        scene.desk.start_node(&scene.tracker, &scene.stop);
        idle().await;
        Node { scene, mute }
    }

    /// A queue drainer joins: nobody is connected to it.
    async fn drainer(&self, name: &str) -> Scene {
        let scene = self.desk(name, self.stores.clone(), Vec::new());
        scene.desk.start_sweeps(&trace(), &scene.tracker, &scene.stop);
        idle().await;
        scene
    }

    fn desk(&self, name: &str, stores: Stores, interceptors: Vec<Arc<dyn Interceptor>>) -> Scene {
        let mut workers = self.workers.lock().expect("no panic");
        *workers += 1;
        let worker = WorkerId::new(*workers).expect("few");
        drop(workers);
        let node = named(name);
        Scene::on(Ground {
            real: self.stores.clone(),
            stores,
            ids: Arc::new(SnowflakeIds::new(Arc::clone(&self.clock), worker, 0)),
            clock: Arc::clone(&self.clock),
            coordination: self.coordination.clone(),
            cluster: Some(Cluster {
                nodes: self.wire.node(node.clone()),
                board: Arc::clone(&self.board) as Arc<dyn LoadBoard>,
                tasks: Arc::clone(&self.tasks) as Arc<dyn TaskLeases>,
            }),
            node,
            interceptors,
        })
    }

    /// Hears everything that is broadcast.
    async fn eavesdrop(&self) -> mpsc::Receiver<Heard> {
        self.wire.node(named("eavesdropper")).subscribe().await
    }

    /// Says an event to one node as another one would, at the time the test chooses.
    async fn say(&self, to: &Node, event: Event, message: Option<Arc<Message>>) -> Envelope {
        let node = named("elsewhere");
        let context =
            EventContext { now: self.clock.now(), source: node.clone(), trace_id: trace() };
        let envelope = Envelope::new(event, &context, to.scene.ids.as_ref());
        self.repeat(to, &envelope, message).await;
        envelope
    }

    async fn repeat(&self, to: &Node, envelope: &Envelope, message: Option<Arc<Message>>) {
        let word = NodeMessage::Event { envelope: envelope.clone(), message };
        let nodes = BTreeSet::from([to.scene.node.clone()]);
        self.wire.node(named("elsewhere")).send(&nodes, &word).await.expect("whole");
        idle().await;
    }
}

impl Node {
    /// The process ends without a word: what it committed last is told to nobody.
    async fn dies(&self, house: &House) {
        self.mute.0.store(true, Ordering::SeqCst);
        house.wire.cut(&self.scene.node);
        self.scene.stop.cancel();
        for (conn, _) in self.scene.people.people() {
            self.scene.people.remove(conn);
        }
        idle().await;
    }

    fn clear(&self) {
        self.scene.people.log().clear();
    }

    /// The seqs of the messages that a connection got, in order.
    fn messages(&self, conn: u64) -> Vec<i64> {
        let seq = |push: &Push| match push {
            Push::Message { message, .. } => Some(message.seq.0),
            _ => None,
        };
        self.scene.pushes(conn).iter().filter_map(seq).collect()
    }

    /// The seqs of the messages that a connection got for the first time, by a push that was no retry.
    fn firsts(&self, conn: u64) -> Vec<i64> {
        let seq = |push: &Push| match push {
            Push::Message { message, attempt: 1, .. } => Some(message.seq.0),
            _ => None,
        };
        self.scene.pushes(conn).iter().filter_map(seq).collect()
    }

    fn count(&self, conn: u64, kind: &str) -> usize {
        self.scene.kinds(conn).iter().filter(|known| **known == kind).count()
    }
}

/// Stops events on their way to the handlers, as the end of the process does.
#[derive(Default)]
struct Mute(AtomicBool);

impl Interceptor for Mute {
    fn intercept(&self, _: &Envelope) -> Pass {
        if self.0.load(Ordering::SeqCst) { Pass::Stop } else { Pass::On }
    }
}

/// Task leases that say who held what.
struct Watched {
    leases: MemoryTaskLeases,
    held: Mutex<BTreeSet<(Task, NodeName)>>,
}

impl Watched {
    /// Who held anything since the last question.
    fn holders(&self) -> BTreeSet<(Task, NodeName)> {
        std::mem::take(&mut *self.held.lock().expect("no panic"))
    }
}

#[async_trait]
impl TaskLeases for Watched {
    async fn hold(
        &self,
        task: Task,
        holder: &NodeName,
        ttl: Duration,
    ) -> Result<Option<i64>, StoreFault> {
        let epoch = self.leases.hold(task, holder, ttl).await?;
        if epoch.is_some() {
            self.held.lock().expect("no panic").insert((task, holder.clone()));
        }
        Ok(epoch)
    }

    async fn release(&self, task: Task, holder: &NodeName) -> Result<(), StoreFault> {
        self.leases.release(task, holder).await
    }
}

fn clear(nodes: &[&Node]) {
    nodes.iter().for_each(|node| node.clear());
}

fn named(name: &str) -> NodeName {
    NodeName::new(name).expect("valid")
}

/// `u1` on connection 1 of `a` talks to `a1` on connection 10 of `b`.
async fn talking(a: &Node, b: &Node) -> SessionId {
    b.scene.agent("a1", 10, 5).await;
    let answer = a.scene.consult("u1", 1).await;
    idle().await;
    let session = answer.session_id.expect("open");
    assert!(a.scene.session(session).await.is_owned_by(&admin("a1")));
    session
}
