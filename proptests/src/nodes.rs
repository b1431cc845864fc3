//! Several nodes of one house: each a desk with connections, a worker id and a clock of its own, over
//! one PostgreSQL and one Redis. What a property says of users and agents is asked of any of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kefu_core::{Caller, ConnId, ManualClock, NodeName, SessionId, SnowflakeIds};
use kefu_desk::{
    Cluster, ConnectAnswer, ConnectRequest, Desk, DeskConfig, DeskError, DeskParts, Intent,
    NoConnections, SendRequest, Stores,
};
use kefu_events::Bus;
use kefu_messaging::{Draft, Stored};
use kefu_postgres::{PgStore, WorkerLease};
use kefu_redis::RedisCoordination;
use kefu_testkit::server::postgres::TestDatabase;
use kefu_testkit::{World, build};
use kefu_upload::{LinkSigner, ObjectBlobStore, Uploads};
use object_store::memory::InMemory;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::backend::{Sql, leases, postgres};
use crate::{Violation, ensure};

/// No test takes as long, so nobody renews it.
const WORKER_TTL: Duration = Duration::from_secs(3_600);

/// How long the line may stand still beside an agent with room: each node has passed many times by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// The nodes, and the database that they share.
pub struct Nodes {
    /// The database as an integrator opens it.
    pub sql: Sql,
    /// The rows as they are, whatever is broken on the way to them.
    pub stores: Stores,
    nodes: Vec<Node>,
    _store: PgStore,
    _database: TestDatabase<'static>,
}

/// One node.
pub struct Node {
    /// Its desk.
    pub desk: Arc<Desk>,
    /// Services over the same stores, clock and ids, for what no client asks for, and to look.
    pub world: World,
    _redis: (RedisCoordination, DropGuard),
    _worker: WorkerLease,
    _stop: DropGuard,
}

impl Nodes {
    /// So many nodes over an empty database.
    pub async fn start(count: usize) -> Self {
        Self::broken(count, |_, stores, _| stores).await
    }

    /// As [`Self::start`], where every node, by number from 0, has its stores by way of `breaking`, which
    /// is also given its clock.
    ///
    /// # Panics
    /// When a node does not start.
    pub async fn broken(
        count: usize,
        breaking: impl Fn(usize, Stores, &Arc<ManualClock>) -> Stores + Send + Sync,
    ) -> Self {
        let database = postgres::database().await;
        let prefix = leases::prefix();
        let mut nodes = Vec::new();
        for number in 0..count {
            let breaking = |stores, clock: &_| breaking(number, stores, clock);
            nodes.push(Node::start(&database, &prefix, number, breaking).await);
        }
        let store = postgres::connect(&database).await;
        let (sql, stores) = (Sql::open(database.url()).await, store.stores());
        Self { sql, stores, nodes, _store: store, _database: database }
    }

    /// The node that serves the `number`-th of those who come.
    #[must_use]
    pub fn at(&self, number: usize) -> &Node {
        &self.nodes[number % self.nodes.len()]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Passes until nobody waits beside an agent with room.
    ///
    /// # Errors
    /// Faults of the store; when that never comes.
    pub async fn settle(&self) -> Result<(), Violation> {
        let (mut waiting, mut moved) = (u32::MAX, Instant::now());
        for node in self.nodes.iter().cycle() {
            node.world.drain.run().await?;
            let waits = self.stores.line.front(1).await?.total;
            if waits == 0 || self.stores.agents.list_eligible(1).await?.is_empty() {
                break;
            }
            if waits != waiting {
                (waiting, moved) = (waits, Instant::now());
            }
            ensure(moved.elapsed() < PATIENCE, || {
                format!("{waits} wait beside an agent with room for good")
            })?;
        }
        Ok(())
    }

    /// Drops or blinds the unique indexes behind 2.1, 2.2 and 2.4.
    pub async fn without_constraints(self) -> Self {
        self.sql.execute(postgres::BLIND).await;
        self
    }
}

impl Node {
    async fn start(
        database: &TestDatabase<'_>,
        prefix: &str,
        number: usize,
        breaking: impl FnOnce(Stores, &Arc<ManualClock>) -> Stores + Send,
    ) -> Self {
        let name = NodeName::new(format!("n{number}")).expect("valid");
        let store = postgres::connect(database).await;
        let worker = store.lease_worker(&name, WORKER_TTL).await.expect("a worker id");
        let redis = leases::connect(prefix, name.clone()).await;
        let clock = Arc::new(ManualClock::default());
        let id = worker.worker().expect("just leased");
        let ids = Arc::new(SnowflakeIds::new(Arc::clone(&clock) as _, id, 0));
        let stores = breaking(store.stores(), &clock);
        let cluster =
            Cluster { nodes: redis.0.nodes(), board: redis.0.board(), tasks: store.tasks() };
        let parts = DeskParts {
            stores: stores.clone(),
            coordination: redis.0.ports(),
            cluster: Some(cluster),
            connections: Arc::new(NoConnections),
            uploads: Arc::new(uploads(&stores, &clock)),
            clock: Arc::clone(&clock) as _,
            ids: Arc::clone(&ids) as _,
            node: name,
            interceptors: Vec::new(),
            config: DeskConfig::default(),
        };
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let desk = Desk::start(parts, &build::trace(), &tracker, &stop);
        desk.start_node(&tracker, &stop);
        let world = World::of(stores, clock, ids, Bus::silent());
        Self { desk, world, _redis: redis, _worker: worker, _stop: stop.drop_guard() }
    }

    /// A visitor who wants to talk, over a connection of that number.
    ///
    /// # Errors
    /// As the desk.
    pub async fn consult(
        &self,
        user: &str,
        balance: i64,
        conn: u64,
    ) -> Result<ConnectAnswer, DeskError> {
        let caller = Caller::User(build::user(user, balance));
        let (intent, positions) = (Intent::Consult, BTreeMap::new());
        let request = ConnectRequest { intent, source: "shop".into(), positions };
        self.desk.connect(&caller, ConnId(conn), &request, &build::trace()).await
    }

    /// As [`Self::consult`], with the session that is open then.
    ///
    /// # Errors
    /// What the desk said.
    pub async fn open(&self, user: &str, balance: i64, conn: u64) -> Result<SessionId, Violation> {
        let answer = self.consult(user, balance, conn).await.map_err(|error| refused(&error))?;
        answer.session_id.ok_or_else(|| Violation::new(format!("no session is open for {user}")))
    }

    /// An agent who connects and takes up to `cap` sessions.
    ///
    /// # Errors
    /// What the desk said.
    pub async fn staff(&self, agent: &str, cap: u32, conn: u64) -> Result<(), Violation> {
        let caller = build::agent_caller(&build::admin(agent));
        let (intent, positions) = (Intent::Resume, BTreeMap::new());
        let request = ConnectRequest { intent, source: "console".into(), positions };
        let trace = build::trace();
        self.desk
            .connect(&caller, ConnId(conn), &request, &trace)
            .await
            .map_err(|error| refused(&error))?;
        let origin = kefu_assignment::Origin(None);
        self.desk
            .agent_online(&caller, cap, origin, &trace)
            .await
            .map(drop)
            .map_err(|error| refused(&error))
    }

    /// A text of a visitor in their open session.
    ///
    /// # Errors
    /// What the desk said.
    pub async fn send(&self, user: &str, key: &str, text: &str) -> Result<Stored, Violation> {
        let caller = Caller::User(build::user(user, 0));
        let request = SendRequest {
            session_id: None,
            client_msg_id: build::key(key),
            draft: Draft::Text(text.to_owned()),
            open_session: None,
        };
        let answer = self
            .desk
            .send(&caller, None, request, &build::trace())
            .map_err(|error| refused(&error))?;
        answer.await.map_err(|error| refused(&error.into()))
    }
}

/// What a desk refused, as a violation.
fn refused(error: &DeskError) -> Violation {
    Violation::new(format!("refused: {error}"))
}

fn uploads(stores: &Stores, clock: &Arc<ManualClock>) -> Uploads {
    Uploads::new(
        Arc::new(ObjectBlobStore::new(Arc::new(InMemory::new()), "")),
        Arc::clone(&stores.uploads),
        LinkSigner::new(&[7; 32], Duration::from_secs(900)).expect("long enough"),
        Arc::clone(clock) as _,
    )
}
