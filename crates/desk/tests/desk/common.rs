//! A desk with people around it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kefu_assignment::{Change, Origin, Scope, Snapshot, Verdict};
use kefu_core::{
    Caller, Clock, ConnId, IdSource, NodeName, Seq, SessionId, SnowflakeIds, Timestamp, WorkerId,
};
use kefu_desk::{
    ConnectAnswer, ConnectRequest, Connections, Desk, DeskConfig, DeskError, DeskParts, Intent,
    SendRequest, Stores,
};
use kefu_events::{EventContext, Interceptor};
use kefu_memory::{MemoryCoordination, MemoryWorld};
use kefu_messaging::{Draft, Message, Push, Receipt};
use kefu_presence::Agent;
use kefu_session::Session;
use kefu_testkit::build::{admin, agent_caller, key, node, supervisor_caller, trace, user};
use kefu_upload::{LinkSigner, ObjectBlobStore, Uploads};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::people::{People, Sent};

/// Wall and monotonic time that follow tokio's paused clock.
#[derive(Debug)]
pub(crate) struct PausedClock(Instant);

impl PausedClock {
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_769_558_400_000).after(self.0.elapsed())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// What a desk is built on, where a test wants it otherwise.
pub(crate) struct Ground {
    /// What the scene itself reads.
    pub(crate) real: Stores,
    /// What the desk is given.
    pub(crate) stores: Stores,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) coordination: MemoryCoordination,
    pub(crate) cluster: Option<kefu_desk::Cluster>,
    pub(crate) node: NodeName,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
}

pub(crate) struct Scene {
    pub(crate) stores: Stores,
    pub(crate) desk: Arc<Desk>,
    pub(crate) people: Arc<People>,
    pub(crate) coordination: MemoryCoordination,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) node: NodeName,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Scene {
    pub(crate) fn start() -> Self {
        Self::over(|stores| stores)
    }

    /// A desk over altered stores; the scene itself reads the real ones.
    pub(crate) fn over(alter: impl FnOnce(Stores) -> Stores) -> Self {
        let clock = PausedClock::start();
        let stores = MemoryWorld::new(Arc::clone(&clock)).stores();
        let ids: Arc<dyn IdSource> =
            Arc::new(SnowflakeIds::new(Arc::clone(&clock), WorkerId::default(), 0));
        Self::build(stores.clone(), alter(stores), clock, ids)
    }

    fn build(real: Stores, stores: Stores, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        let coordination = MemoryCoordination::new(Arc::clone(&clock));
        Self::on(Ground {
            real,
            stores,
            clock,
            ids,
            coordination,
            cluster: None,
            node: node(),
            interceptors: Vec::new(),
        })
    }

    /// A desk on the given ground.
    pub(crate) fn on(ground: Ground) -> Self {
        let Ground { real, stores, clock, ids, coordination, cluster, node, interceptors } = ground;
        let people = People::new();
        let uploads = Uploads::new(
            Arc::new(ObjectBlobStore::new(Arc::new(object_store::memory::InMemory::new()), "")),
            Arc::clone(&stores.uploads),
            LinkSigner::new(&[7; 32], Duration::from_secs(900)).expect("long enough"),
            Arc::clone(&clock),
        );
        let parts = DeskParts {
            stores,
            coordination: coordination.ports(),
            cluster,
            connections: Arc::clone(&people) as Arc<dyn Connections>,
            uploads: Arc::new(uploads),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            node: node.clone(),
            interceptors,
            config: DeskConfig::default(),
        };
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let desk = Desk::start(parts, &trace(), &tracker, &stop);
        Self { stores: real, desk, people, coordination, clock, ids, node, tracker, stop }
    }

    /// The process dies without a word; another starts over the same stores, nobody connected.
    pub(crate) async fn killed_and_restarted(self) -> Self {
        self.stop.cancel();
        let Self { stores, clock, ids, .. } = self;
        let next = Self::build(stores.clone(), stores, clock, ids);
        next.desk.start_up(&trace()).await.expect("started");
        next.sweeping()
    }

    pub(crate) fn sweeping(self) -> Self {
        self.desk.start_node(&self.tracker, &self.stop);
        self.desk.start_sweeps(&trace(), &self.tracker, &self.stop);
        self
    }

    pub(crate) async fn connect(
        &self,
        caller: &Caller,
        conn: u64,
        intent: Intent,
        positions: &[(SessionId, i64)],
    ) -> Result<ConnectAnswer, DeskError> {
        let conn = ConnId(conn);
        self.people.add(conn, caller.person());
        let positions: BTreeMap<_, _> =
            positions.iter().map(|(id, seq)| (*id, Seq(*seq))).collect();
        let request = ConnectRequest { intent, source: "shop".into(), positions };
        let answer = self.desk.connect(caller, conn, &request, &trace()).await?;
        for (session, upto) in &answer.served {
            self.people.served(conn, *session, *upto);
        }
        Ok(answer)
    }

    /// A supervisor connects.
    pub(crate) async fn supervisor(&self, id: &str, conn: u64) -> ConnectAnswer {
        let caller = supervisor_caller(id);
        self.people.add_supervisor(ConnId(conn), caller.person());
        self.connect(&caller, conn, Intent::Resume, &[]).await.expect("connected")
    }

    /// A visitor asks; gives the answer.
    pub(crate) async fn consult(&self, id: &str, conn: u64) -> ConnectAnswer {
        self.connect(&visitor(id), conn, Intent::Consult, &[]).await.expect("connected")
    }

    pub(crate) async fn resume(&self, id: &str, conn: u64) -> ConnectAnswer {
        self.connect(&visitor(id), conn, Intent::Resume, &[]).await.expect("connected")
    }

    /// An agent connects and takes up to `cap` sessions; zero only connects.
    pub(crate) async fn agent(&self, id: &str, conn: u64, cap: u32) -> ConnectAnswer {
        let answer = self.connect(&agent(id), conn, Intent::Resume, &[]).await.expect("connected");
        if cap > 0 {
            let origin = Origin(Some(ConnId(conn)));
            self.desk.agent_online(&agent(id), cap, origin, &trace()).await.expect("online");
        }
        answer
    }

    pub(crate) async fn leave(&self, caller: &Caller, conn: u64) {
        self.people.remove(ConnId(conn));
        self.desk.disconnect(caller, ConnId(conn), &trace()).await;
    }

    /// Lets time pass for somebody whose connection gives signs of life.
    pub(crate) async fn stay(&self, caller: &Caller, conn: u64, seconds: u32) {
        for _ in 0..seconds {
            pass(1.0).await;
            self.desk.renew(&caller.person(), ConnId(conn)).await;
        }
    }

    /// `u1` on connection 1 talks to `a1` on connection 10.
    pub(crate) async fn talking(&self) -> SessionId {
        self.agent("a1", 10, 5).await;
        let answer = self.consult("u1", 1).await;
        idle().await;
        let session = answer.session_id.expect("open");
        assert!(self.session(session).await.is_owned_by(&admin("a1")));
        self.people.log().clear();
        session
    }

    pub(crate) async fn say(
        &self,
        caller: &Caller,
        conn: u64,
        session: SessionId,
        client_key: &str,
    ) -> Arc<Message> {
        let request = SendRequest {
            session_id: Some(session),
            client_msg_id: key(client_key),
            draft: Draft::Text(format!("text {client_key}")),
            open_session: None,
        };
        let sent = self.desk.send(caller, Some(ConnId(conn)), request, &trace()).expect("queued");
        let message = sent.await.expect("stored").message;
        self.people.wrote(ConnId(conn), &message);
        message
    }

    pub(crate) async fn types(&self, caller: &Caller, conn: u64, session: SessionId) {
        let conn = ConnId(conn);
        self.desk.typing(caller, conn, session, true, &trace()).await.expect("relayed");
    }

    pub(crate) async fn transfer(&self, by: &Caller, session: SessionId, to: &str) {
        let origin = Origin(Some(ConnId(10)));
        let moved = self.desk.transfer(by, session, &admin(to), None, origin, &trace()).await;
        moved.expect("transferred");
    }

    /// Writes an agent's row as it is, without any event.
    pub(crate) async fn put_agent(&self, agent: Agent) {
        let scope = Scope::new([agent.info.admin_id.clone()], []);
        let change = Change { agents: vec![agent], ..Change::default() };
        let decide = |_: &Snapshot, _: &dyn IdSource| Verdict::Apply(change.clone());
        let written = self.stores.assignments.transact(&scope, &decide, self.ids.as_ref()).await;
        written.expect("written");
    }

    pub(crate) async fn agent_row(&self, id: &str) -> Agent {
        self.stores.agents.find(&admin(id)).await.expect("readable").expect("known")
    }

    pub(crate) fn context(&self) -> EventContext {
        EventContext { now: self.clock.now(), source: self.node.clone(), trace_id: trace() }
    }

    pub(crate) async fn acknowledge(&self, caller: &Caller, message: &Message) {
        let (msg_id, receipt) = (message.msg_id, Receipt::Delivered);
        let trace = trace();
        let acked = self.desk.acknowledge(caller, None, msg_id, receipt, false, &trace);
        acked.await.expect("taken");
    }

    pub(crate) async fn session(&self, id: SessionId) -> Session {
        self.stores.sessions.find(id).await.expect("readable").expect("stored")
    }

    pub(crate) fn sent_to(&self, conn: u64) -> Vec<Sent> {
        let log = self.people.log();
        log.iter().filter(|sent| sent.conn == ConnId(conn)).cloned().collect()
    }

    /// What a connection got about sessions: without lists and without an agent's own status.
    pub(crate) fn pushes(&self, conn: u64) -> Vec<Push> {
        let personal =
            |push: &Push| !matches!(push, Push::QueueList { .. } | Push::AgentStatus { .. });
        self.sent_to(conn).into_iter().map(|sent| sent.push).filter(personal).collect()
    }

    /// The names of what a connection got.
    pub(crate) fn kinds(&self, conn: u64) -> Vec<&'static str> {
        self.pushes(conn).iter().map(kind).collect()
    }
}

pub(crate) const fn kind(push: &Push) -> &'static str {
    match push {
        Push::Message { own: true, .. } => "own message",
        Push::Message { .. } => "message",
        Push::PeerAck { .. } => "peer_ack",
        Push::Typing { is_typing: true, .. } => "typing",
        Push::Typing { .. } => "typing ends",
        Push::Assigned { .. } => "assigned",
        Push::Ended { .. } => "ended",
        Push::Rated { .. } => "rated",
        Push::Requeued { .. } => "requeued",
        Push::OfflineNotice => "offline_notice",
        Push::QueuePosition { .. } => "position",
        Push::SessionNew(_) => "session_new",
        Push::SessionRemoved { .. } => "session_removed",
        Push::QueueList { .. } => "queue_list",
        Push::AgentStatus { .. } => "agent_status",
        Push::WatchedTyping { is_typing: true, .. } => "typing seen",
        Push::WatchedTyping { .. } => "typing seen to end",
        Push::Read { .. } => "read",
        Push::Page { .. } => "page",
        Push::Board(_) => "board",
        Push::Note { own: true, .. } => "own note",
        Push::Note { .. } => "note",
    }
}

pub(crate) fn visitor(id: &str) -> Caller {
    Caller::User(user(id, 0))
}

pub(crate) fn agent(id: &str) -> Caller {
    agent_caller(&admin(id))
}

/// Nobody else's devices are left out.
pub(crate) const NOWHERE: Origin = Origin(None);

pub(crate) async fn pass(seconds: f64) {
    // tidy: time is paused
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// Lets everything happen that needs no time.
pub(crate) async fn idle() {
    pass(0.001).await;
}
