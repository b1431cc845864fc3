//! A world in which people open, send, claim and leave: the domain's services over any stores.

use std::sync::Arc;

use kefu_assignment::{
    AssignmentDecision, AssignmentError, Assignments, Change, Drain, Origin, Scope, Verdict,
};
use kefu_core::limit::MAX_SESSIONS_PER_AGENT;
use kefu_core::{
    AdminId, AgentInfo, Caller, Clock, IdSource, ManualClock, PageLimit, Seq, SessionId,
    SnowflakeIds, StoreFault, Timestamp, UserInfo, WorkerId,
};
use kefu_desk::Stores;
use kefu_events::{Bus, Envelope, EventContext, EventSource};
use kefu_messaging::{
    AppendOutcome, AppendRequest, AppendVerdict, Message, ReceiptRequest, ReceiptVerdict, Sender,
    Stored, Window, decide_append, decide_receipts,
};
use kefu_presence::Agent;
use kefu_session::{Opened, Session, decide_open};

use crate::build::{node, trace};
use crate::{Harness, build};

/// Stores with a clock, an id source and the services built from them. Clones share everything.
#[derive(Clone)]
pub struct World {
    /// The ports.
    pub stores: Stores,
    /// Stands still until moved.
    pub clock: Arc<ManualClock>,
    /// Follows the clock.
    pub ids: Arc<SnowflakeIds>,
    /// What the services publish on.
    pub bus: Bus,
    /// Claim, transfer, end, availability.
    pub assignments: Arc<Assignments>,
    /// The automatic assigner.
    pub drain: Arc<Drain>,
}

impl World {
    /// An empty world of its own on a fresh backend. The harness must be kept as long as the world.
    pub async fn start<H: Harness>() -> (H, Self) {
        let harness = H::start().await;
        let world = Self::new(harness.stores());
        (harness, world)
    }

    /// A world over empty stores, its clock at the default moment.
    #[must_use]
    pub fn new(stores: Stores) -> Self {
        Self::with(stores, Arc::new(ManualClock::default()), 0, Bus::silent())
    }

    /// A world over given stores; ids start above `highest_stored` (T3).
    #[must_use]
    pub fn with(stores: Stores, clock: Arc<ManualClock>, highest_stored: i64, bus: Bus) -> Self {
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let ids = Arc::new(SnowflakeIds::new(time, WorkerId::default(), highest_stored));
        Self::of(stores, clock, ids, bus)
    }

    /// A world over given stores, whose ids come from `source`.
    #[must_use]
    pub fn of(
        stores: Stores,
        clock: Arc<ManualClock>,
        source: Arc<SnowflakeIds>,
        bus: Bus,
    ) -> Self {
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let ids: Arc<dyn IdSource> = Arc::clone(&source) as _;
        let events = EventSource::new(time, ids, bus.clone(), node());
        let assignments = Assignments::new(
            Arc::clone(&stores.assignments),
            Arc::clone(&stores.agents),
            Arc::clone(&stores.sessions),
            events.clone(),
            MAX_SESSIONS_PER_AGENT,
        );
        let drain = Drain::new(
            Arc::clone(&stores.line),
            Arc::clone(&stores.agents),
            Arc::clone(&stores.assignments),
            events,
            trace(),
        );
        let (assignments, drain) = (Arc::new(assignments), Arc::new(drain));
        Self { stores, clock, ids: source, bus, assignments, drain }
    }

    /// The same world after its process was restarted: fresh handles, ids above all stored (T3).
    pub async fn restarted<H: Harness>(self, harness: &mut H) -> Self {
        let (clock, bus) = (Arc::clone(&self.clock), self.bus.clone());
        drop(self);
        harness.restart().await;
        let stores = harness.stores();
        let highest = stores.messages.highest_id().await.expect("readable");
        Self::with(stores, clock, highest, bus)
    }

    /// What further services of this world are built with.
    #[must_use]
    pub fn source(&self) -> EventSource {
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        EventSource::new(clock, ids, self.bus.clone(), node())
    }

    /// Now, here, traced.
    #[must_use]
    pub fn context(&self) -> EventContext {
        EventContext { now: self.clock.now(), source: node(), trace_id: trace() }
    }

    /// The user's open session, opened if there is none (S1).
    pub async fn open(&self, id: &str, balance: i64) -> Session {
        self.open_as(&build::user(id, balance)).await.session
    }

    /// As [`Self::open`], with all the answer.
    pub async fn open_as(&self, user: &UserInfo) -> Opened {
        self.try_open(user).await.expect("opened")
    }

    /// As [`Self::open_as`], with the fault.
    ///
    /// # Errors
    /// What the store answered.
    pub async fn try_open(&self, user: &UserInfo) -> Result<Opened, StoreFault> {
        let context = self.context();
        let ids = self.ids.as_ref();
        self.stores
            .sessions
            .open(&user.user_id, &|open, ids| decide_open(open, user, "web", 0, &context, ids), ids)
            .await
    }

    /// An agent who is online and live, with room for `cap` sessions.
    pub async fn agent(&self, id: &str, cap: u32) -> AdminId {
        let info = build::agent_info(id);
        self.connect(&info).await;
        self.online(&info.admin_id, cap).await;
        info.admin_id
    }

    /// Marks an agent live.
    pub async fn connect(&self, info: &AgentInfo) -> Agent {
        self.assignments.connected(info, trace()).await.expect("connected")
    }

    /// Marks an agent as gone.
    pub async fn vanish(&self, admin: &AdminId) {
        self.assignments.vanished(admin, trace()).await.expect("vanished");
    }

    /// Lets an agent take sessions.
    pub async fn online(&self, admin: &AdminId, cap: u32) -> Agent {
        let caller = build::agent_caller(admin);
        self.assignments.go_online(&caller, cap, here(), trace()).await.expect("online")
    }

    /// One drain pass; says how many sessions this call assigned.
    pub async fn drain(&self) -> usize {
        self.drain.run().await.expect("drained")
    }

    /// Claims a session for an agent (Z6).
    ///
    /// # Errors
    /// As the service.
    pub async fn claim(
        &self,
        admin: &AdminId,
        session: SessionId,
    ) -> Result<Session, AssignmentError> {
        self.assignments.claim(&build::agent_caller(admin), session, here(), trace()).await
    }

    /// Transfers a session (Z5).
    ///
    /// # Errors
    /// As the service.
    pub async fn transfer(
        &self,
        caller: &Caller,
        session: SessionId,
        target: &AdminId,
    ) -> Result<(), AssignmentError> {
        self.assignments.transfer(caller, session, target, None, here(), trace()).await
    }

    /// Ends a session (S4).
    ///
    /// # Errors
    /// As the service.
    pub async fn end(
        &self,
        caller: &Caller,
        session: SessionId,
    ) -> Result<Session, AssignmentError> {
        self.assignments.end(caller, session, here(), trace()).await
    }

    /// Ends a session as its user.
    pub async fn end_by_user(&self, session: &Session) -> Session {
        let caller = build::user_caller(&session.user.user_id);
        self.end(&caller, session.id).await.expect("ended")
    }

    /// Takes an agent offline; with `requeue` the sessions go back to the line.
    ///
    /// # Errors
    /// As the service.
    pub async fn offline(&self, admin: &AdminId, requeue: bool) -> Result<Agent, AssignmentError> {
        self.assignments.go_offline(&build::agent_caller(admin), requeue, here(), trace()).await
    }

    /// Runs one decision under lock.
    ///
    /// # Errors
    /// What the store answered.
    pub async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
    ) -> Result<Verdict, StoreFault> {
        self.stores.assignments.transact(scope, decide, self.ids.as_ref()).await
    }

    /// Writes rows as they are.
    ///
    /// # Errors
    /// What the store answered.
    pub async fn apply(&self, change: &Change) -> Result<Verdict, StoreFault> {
        let scope = Scope::new(
            change.agents.iter().map(|agent| agent.info.admin_id.clone()),
            change.sessions.iter().map(|session| session.id),
        );
        self.transact(&scope, &|_, _| Verdict::Apply(change.clone())).await
    }

    /// Writes agents as they are.
    pub async fn put_agents(&self, agents: &[Agent]) {
        let change = Change { agents: agents.to_vec(), ..Change::default() };
        self.apply(&change).await.expect("written");
    }

    /// Appends a batch under the real rules.
    ///
    /// # Errors
    /// What the store answered.
    pub async fn append(&self, batch: &[AppendRequest]) -> Result<AppendVerdict, StoreFault> {
        let context = self.context();
        self.stores
            .messages
            .append(
                batch,
                &|snapshot, requests, ids| decide_append(snapshot, requests, &context, ids),
                self.ids.as_ref(),
            )
            .await
    }

    /// Appends one message.
    pub async fn append_one(&self, request: AppendRequest) -> AppendOutcome {
        let mut verdict = self.append(&[request]).await.expect("appended");
        assert_eq!(verdict.outcomes.len(), 1, "one outcome per request");
        verdict.outcomes.remove(0)
    }

    /// Sends one text.
    pub async fn send(
        &self,
        session: SessionId,
        sender: &Sender,
        key: &str,
        text: &str,
    ) -> AppendOutcome {
        self.append_one(build::text(session, sender, key, text)).await
    }

    /// Sends one text that must be stored.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn say(
        &self,
        session: SessionId,
        sender: &Sender,
        key: &str,
        text: &str,
    ) -> Arc<Message> {
        stored(self.send(session, sender, key, text).await).message
    }

    /// Sends texts `1 … count` with keys of that name, in batches.
    pub async fn say_many(&self, session: SessionId, sender: &Sender, count: usize) {
        let all: Vec<_> = (1..=count)
            .map(|n| build::text(session, sender, &n.to_string(), &n.to_string()))
            .collect();
        for batch in all.chunks(64) {
            self.append(batch).await.expect("appended").outcomes.into_iter().for_each(|outcome| {
                stored(outcome);
            });
        }
    }

    /// Records a batch of receipts under the real rules.
    ///
    /// # Errors
    /// What the store answered.
    pub async fn report(&self, batch: &[ReceiptRequest]) -> Result<ReceiptVerdict, StoreFault> {
        self.stores.messages.record(batch, &decide_receipts).await
    }

    /// One session as stored.
    ///
    /// # Panics
    /// When there is none.
    pub async fn session(&self, id: SessionId) -> Session {
        self.stores.sessions.find(id).await.expect("readable").expect("a stored session")
    }

    /// One agent as stored.
    ///
    /// # Panics
    /// When there is none.
    pub async fn agent_row(&self, id: &AdminId) -> Agent {
        self.stores.agents.find(id).await.expect("readable").expect("a stored agent")
    }

    /// All messages of a session, page by page.
    pub async fn history(&self, session: SessionId) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map_or(Seq(0), |message| message.seq);
            let window = Window::After(after);
            let page = self.stores.messages.history(session, window, PageLimit::MAX).await;
            let page = page.expect("readable");
            messages.extend(page.items);
            if !page.has_more {
                return messages;
            }
        }
    }

    /// All unconfirmed events, in id order.
    pub async fn outbox(&self) -> Vec<Envelope> {
        let everything = Timestamp(i64::MAX);
        let rows = self.stores.outbox.list_unconfirmed(everything, None, 100_000).await;
        rows.expect("readable")
    }

    /// All unconfirmed events of one key, in id order.
    pub async fn outbox_of(&self, key: &str) -> Vec<Envelope> {
        let mut rows = self.outbox().await;
        rows.retain(|envelope| envelope.event.key() == key);
        rows
    }
}

/// No connection: nobody else's devices are left out.
const fn here() -> Origin {
    Origin(None)
}

/// The stored message behind an outcome.
///
/// # Panics
/// When it was refused.
pub fn stored(outcome: AppendOutcome) -> Stored {
    match outcome {
        AppendOutcome::Stored(stored) => stored,
        AppendOutcome::Refused(refusal) => panic!("refused: {refusal}"),
    }
}
