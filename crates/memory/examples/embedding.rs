//! Another program that uses kefu's rules without its server: it routes visitors to agents with
//! `kefu-assignment` and keeps their messages with `kefu-messaging`, over the ports in memory.
//! `docs/embedding.md` walks through it. Run it with `cargo run --example embedding`.
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_assignment::{Assignments, Drain, Origin};
use kefu_core::limit::{CONNECTIONS_PER_PERSON, PRESENCE_TTL};
use kefu_core::{
    AdminId, AgentInfo, Balance, Caller, ClientMsgId, Clock, ConnId, IdSource, NodeName, Person,
    SessionId, SnowflakeIds, SystemClock, TraceId, UserId, UserInfo, WorkerId,
};
use kefu_desk::{Coordination, Stores};
use kefu_events::{
    Bus, BusBuilder, Envelope, Event, EventContext, EventSource, Handler, HandlerError, Lane,
};
use kefu_memory::MemoryWorld;
use kefu_messaging::{
    AppendRequest, AppendTarget, BatchConfig, Delivery, Draft, Fresh, Parties, Push, Pusher, Reach,
    Receipt, ReceiptRequest, Receipts, Reported, RetrySchedule, Sender, Sends, Stored,
};
use kefu_presence::Lease;
use kefu_session::{Session, decide_open};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a person was sent, as a line of text.
type Letter = (Person, String);

/// The program's own way to people: here a channel, elsewhere a socket, a mail, a phone.
struct Post {
    letters: mpsc::Sender<Letter>,
}

#[async_trait]
impl Pusher for Post {
    async fn push(&self, to: &Person, push: &Push, _except: Option<ConnId>) -> Reach {
        let text = match push {
            Push::Message { message, own: false, .. } => format!("message {:?}", message.content),
            Push::PeerAck { status, .. } => format!("your message is {status}"),
            // What the sender's other devices would hear; this program knows one device each.
            _ => return Reach::default(),
        };
        // Never waits: a message whose letter is not taken stays `pending` and is not tried again.
        let taken = self.letters.try_send((to.clone(), text)).is_ok();
        Reach { connections: usize::from(taken) }
    }

    async fn push_to_consoles(&self, _push: &Push) {}
}

/// What the program makes of committed events: it delivers messages.
struct Deliver {
    delivery: Delivery,
}

impl Deliver {
    const NAME: &'static str = "deliver";
}

#[async_trait]
impl Handler for Deliver {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        let Event::MessageStored { session_id, user_id, admin_id, .. } = &envelope.event else {
            return Ok(());
        };
        // The message travels with its event; one that is read back from the outbox has none, and
        // a program that must survive its own death would read it from the store.
        let Some(fresh) = envelope.attachment::<Fresh>() else { return Ok(()) };
        let parties =
            Parties { session_id: *session_id, user: user_id.clone(), owner: admin_id.clone() };
        self.delivery.deliver(&fresh, &parties).await;
        Ok(())
    }
}

/// The services, built from ports: what a program keeps for its whole life.
struct Office {
    stores: Stores,
    coordination: Coordination,
    assignments: Assignments,
    drain: Drain,
    sends: Sends,
    receipts: Arc<Receipts>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    bus: Bus,
    node: NodeName,
    trace: TraceId,
}

impl Office {
    fn open(
        post: Arc<dyn Pusher>,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Self, Box<dyn Error>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids: Arc<dyn IdSource> =
            Arc::new(SnowflakeIds::new(clock.clone(), WorkerId::default(), 0));
        let world = MemoryWorld::new(clock.clone());
        let (stores, coordination) = (world.stores(), world.coordination());
        let (node, trace) = (NodeName::new("office")?, TraceId::new("example")?);

        // The services publish what they committed; the handler's queue is reserved first, because
        // the handler itself needs a service.
        let (bus, runner) = BusBuilder::new().handler(Deliver::NAME, Lane::Durable, 64).build();
        let batch = BatchConfig::default();
        let (delivery, receipts) = Delivery::start(
            stores.messages.clone(),
            stores.sessions.clone(),
            post,
            RetrySchedule::default(),
            batch,
            tracker,
            stop,
        );
        runner.start(&[Arc::new(Deliver { delivery })], &stores.outbox, &clock, tracker, stop);
        let source = EventSource::new(clock.clone(), ids.clone(), bus.clone(), node.clone());
        let sends = Sends::start(
            stores.messages.clone(),
            source.clone(),
            trace.clone(),
            batch,
            tracker,
            stop,
        );
        let assignments = Assignments::new(
            stores.assignments.clone(),
            stores.agents.clone(),
            stores.sessions.clone(),
            source.clone(),
            10,
        );
        let drain = Drain::new(
            stores.line.clone(),
            stores.agents.clone(),
            stores.assignments.clone(),
            source.clone(),
            trace.clone(),
        );
        Ok(Self {
            stores,
            coordination,
            assignments,
            drain,
            sends,
            receipts,
            clock,
            ids,
            bus,
            node,
            trace,
        })
    }

    /// A visitor begins to wait, or gets the session that is open already (S1).
    async fn consult(&self, user: &UserInfo) -> Result<Session, Box<dyn Error>> {
        let context = EventContext {
            now: self.clock.now(),
            source: self.node.clone(),
            trace_id: self.trace.clone(),
        };
        let opened = self
            .stores
            .sessions
            .open(
                &user.user_id,
                &|open, ids| decide_open(open, user, "example", 0, &context, ids),
                self.ids.as_ref(),
            )
            .await?;
        self.bus.publish(opened.events);
        Ok(opened.session)
    }

    /// An agent holds a lease (liveness) and takes sessions (availability): two facts (Z7).
    async fn arrive(
        &self,
        agent: &AgentInfo,
        conn: ConnId,
        cap: u32,
    ) -> Result<(), Box<dyn Error>> {
        let person = Person::Agent(agent.admin_id.clone());
        let lease = Lease { node: self.node.clone(), conn };
        let presence = &self.coordination.presence;
        presence.acquire(&person, &lease, PRESENCE_TTL, CONNECTIONS_PER_PERSON).await?;
        self.assignments.connected(agent, self.trace.clone()).await?;
        let caller = Caller::Agent(agent.clone());
        self.assignments.go_online(&caller, cap, Origin::default(), self.trace.clone()).await?;
        Ok(())
    }

    /// Stores a message. The same key again is the same message (T2).
    async fn send(
        &self,
        user: &UserInfo,
        session: SessionId,
        key: &str,
        text: &str,
    ) -> Result<Stored, Box<dyn Error>> {
        let request = AppendRequest {
            target: AppendTarget::Session(session),
            sender: Sender::User(user.user_id.clone()),
            client_msg_id: ClientMsgId::new(key)?,
            draft: Draft::Text(text.to_owned()),
            origin: None,
            trace_id: self.trace.clone(),
        };
        Ok(self.sends.send(request, None)?.await?)
    }

    async fn print_owner(&self, name: &str, session: SessionId) -> Result<(), Box<dyn Error>> {
        let row = self.stores.sessions.find(session).await?.ok_or("the session is stored")?;
        match (row.admin_id, self.stores.line.place(session).await?) {
            (Some(agent), _) => println!("{name} is served by {agent}"),
            (None, Some(place)) => {
                println!("{name} waits at {} of {}", place.position, place.total);
            }
            (None, None) => println!("{name} is gone"),
        }
        Ok(())
    }
}

fn visitor(id: &str, name: &str, balance: i64) -> Result<UserInfo, Box<dyn Error>> {
    let user_id = UserId::new(id)?;
    let balance = Some(Balance(balance));
    Ok(UserInfo { user_id, name: name.to_owned(), avatar: None, balance, vip: None })
}

fn agent(id: &str, name: &str) -> Result<AgentInfo, Box<dyn Error>> {
    Ok(AgentInfo { admin_id: AdminId::new(id)?, name: name.to_owned(), avatar: None })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let (letters, mut inbox) = mpsc::channel(64);
    let office = Office::open(Arc::new(Post { letters }), &tracker, &stop)?;

    // Three visitors wait. The line goes by balance, then by who came first (Q1).
    let [bo, mei, li] =
        [visitor("u-bo", "Bo", 100)?, visitor("u-mei", "Mei", 500)?, visitor("u-li", "Li", 900)?];
    let bo_session = office.consult(&bo).await?.id;
    let mei_session = office.consult(&mei).await?.id;
    let li_session = office.consult(&li).await?.id;

    // Two agents come, with room for one session each; a pass of the drain assigns (Z1, Z2).
    let (an, bea) = (agent("a-an", "An")?, agent("a-bea", "Bea")?);
    office.arrive(&an, ConnId(1), 1).await?;
    office.arrive(&bea, ConnId(2), 1).await?;
    println!("assigned: {}", office.drain.run().await?);
    for (name, session) in [("Li", li_session), ("Mei", mei_session), ("Bo", bo_session)] {
        office.print_owner(name, session).await?;
    }

    // Mei writes. Her client never saw the answer and sends again under the same key.
    let first = office.send(&mei, mei_session, "key-1", "Is it in stock?").await?;
    let again = office.send(&mei, mei_session, "key-1", "Is it in stock?").await?;
    assert_eq!(first.message.msg_id, again.message.msg_id);
    assert!(again.duplicate);
    println!("stored once, at position {}", first.message.seq);
    let (to, text) = inbox.recv().await.ok_or("the message is pushed")?;
    println!("{to} gets {text}");

    // Her agent has read it. Only then is she told, and the push is not repeated (M3).
    let reader = Caller::Agent(bea.clone());
    let report = ReceiptRequest {
        by: Reported::By(reader.clone()),
        msg_id: first.message.msg_id,
        receipt: Receipt::Read,
        cumulative: false,
        origin: None,
        trace_id: None,
    };
    office.receipts.report(report).await?;
    let (to, text) = inbox.recv().await.ok_or("the receipt is pushed")?;
    println!("{to} gets {text}");

    // The end gives the agent's place back; the next pass serves who waited (Z3).
    let trace = office.trace.clone();
    office.assignments.end(&reader, mei_session, Origin::default(), trace).await?;
    println!("assigned: {}", office.drain.run().await?);
    office.print_owner("Bo", bo_session).await?;
    for record in office.stores.assignments.list_records(bo_session).await? {
        let considered: Vec<_> = record
            .candidates
            .iter()
            .map(|agent| format!("{} {}/{}", agent.admin_id, agent.load, agent.max_sessions))
            .collect();
        println!("why: {} among {}", record.rule, considered.join(", "));
    }

    // Nothing new is taken; what was accepted is finished.
    stop.cancel();
    tracker.close();
    tracker.wait().await;
    Ok(())
}
