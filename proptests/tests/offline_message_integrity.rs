//! PBT 2.7, offline message integrity: what is sent while nobody is there is stored `pending`, and its
//! session stands in the line until an assignment of it has committed (Q2, Q3).

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kefu_core::{AdminId, PageLimit, Person, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{AppendOutcome, Message, MessageStatus};
use kefu_proptests::backend::{Backend, Sql};
use kefu_proptests::broken::{
    LineFlaw, PendingFlaw, SchemaMistake, caught_in_schema, caught_on, line, pending,
};
use kefu_proptests::{Violation, ensure, generated, in_every_schema, on_every_backend, sound};
use kefu_session::{Session, Status};
use kefu_testkit::build::{admin, agent_info, from_user, text};
use kefu_testkit::check::Ledger;
use kefu_testkit::{Flaky, Strike, World, race, stored};
use proptest::prelude::*;

on_every_backend!(
    fifty_messages_to_nobody_are_pending,
    any_sends_to_nobody_are_kept_for_later,
    sends_at_once_to_nobody_are_pending,
    a_message_stored_as_delivered_is_caught,
    an_answer_without_a_row_is_caught,
    a_line_left_before_the_commit_is_caught,
);

in_every_schema!(a_table_that_keeps_nothing_pending_is_caught);

/// A world whose agents are all gone, each in another way, and whose stores can fail.
struct Offline {
    world: World,
    assigning: Arc<Flaky<dyn kefu_assignment::AssignmentStore>>,
    sending: Arc<Flaky<dyn kefu_messaging::MessageStore>>,
}

impl Offline {
    async fn new(stores: Stores) -> Self {
        let assigning = Arc::new(Flaky::new(Arc::clone(&stores.assignments)));
        let sending = Arc::new(Flaky::new(Arc::clone(&stores.messages)));
        let world = World::new(Stores {
            assignments: Arc::clone(&assigning) as _,
            messages: Arc::clone(&sending) as _,
            ..stores
        });
        let left = world.agent("left", 10).await;
        world.offline(&left, false).await.expect("offline");
        // Chose to be online; no connection holds a lease.
        let gone = world.agent("gone", 10).await;
        world.vanish(&gone).await;
        // There, and not taking anything.
        world.connect(&agent_info("idle")).await;
        Self { world, assigning, sending }
    }

    /// Every acknowledged message is stored once and pending, and its session is in the line.
    async fn check_kept(
        &self,
        sessions: &[Session],
        acked: &[Arc<Message>],
    ) -> Result<(), Violation> {
        let ids = sessions.iter().map(|session| session.id);
        let agents = ["left", "gone", "idle"].map(admin);
        let ledger = Ledger::collect(&self.world.stores, ids, agents).await.expect("readable");
        for session in &ledger.sessions {
            let place = self.world.stores.line.place(session.id).await.expect("readable");
            let in_line = session.status == Status::Waiting && place.is_some();
            ensure(in_line, || format!("line: {:?} session at {place:?}", session.status))?;
        }
        let missing = ledger.missing_acks(acked);
        ensure(missing.is_empty(), || format!("missing: {}", missing[0]))?;
        let messages = || ledger.messages.values().flatten();
        let once: BTreeSet<_> = acked.iter().map(|message| message.msg_id).collect();
        let count = messages().count();
        ensure(count == once.len(), || format!("missing: {count} of {} are stored", once.len()))?;
        let other = messages().find(|message| message.status != MessageStatus::Pending);
        ensure(other.is_none(), || format!("status: {other:?}"))?;
        sound(&ledger)
    }

    /// An agent comes; the first commit of the assignment fails; the session must still be in the line.
    async fn check_failed_assignment(
        &self,
        sessions: &[Session],
        acked: &[Arc<Message>],
    ) -> Result<AdminId, Violation> {
        let agent = self.world.agent("late", 10).await;
        self.assigning.fail(1, Strike::Before, StoreFault::unavailable("crash by test"));
        let crashed = self.world.drain.run().await;
        assert!(crashed.is_err(), "the commit was made to fail");
        self.check_kept(sessions, acked).await?;
        Ok(agent)
    }

    /// The agent gets everything, oldest first.
    async fn check_served(&self, agent: AdminId, acked: &[Arc<Message>]) -> Result<(), Violation> {
        self.world.drain().await;
        let receiver = Person::Agent(agent);
        let owed = self.world.stores.messages.list_undelivered(&receiver, None, PageLimit::MAX);
        let owed: Vec<_> = owed.await.expect("readable").items.iter().map(|m| m.msg_id).collect();
        let expected: BTreeSet<_> = acked.iter().map(|message| message.msg_id).collect();
        ensure(owed == Vec::from_iter(expected), || {
            format!("served: the agent gets {} of {}", owed.len(), acked.len())
        })
    }
}

// (a) The specification's own falsification.

async fn fifty_messages_to_nobody_are_pending<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_fifty_messages(backend.stores(), backend.sql().await.as_ref()).await
}

async fn check_fifty_messages(stores: Stores, sql: Option<&Sql>) -> Result<(), Violation> {
    let offline = Offline::new(stores).await;
    let world = &offline.world;
    let session = world.open("u1", 0).await;
    let sender = from_user(&session.user.user_id);
    let mut acked = Vec::new();
    for n in 1..=50 {
        let n = n.to_string();
        acked.push(world.say(session.id, &sender, &n, &n).await);
        world.drain().await;
    }
    if let Some(sql) = sql {
        let all = "select count(*) from cg_chat_message where session_id = ?";
        let count = sql.count(all, session.id.get()).await;
        let pending = format!("{all} and status = 'pending'");
        let pending = sql.count(&pending, session.id.get()).await;
        let in_table = (count, pending);
        ensure(in_table == (50, 50), || format!("status: the table counts {in_table:?}"))?;
    }
    let sessions = [session];
    offline.check_kept(&sessions, &acked).await?;
    let agent = offline.check_failed_assignment(&sessions, &acked).await?;
    offline.check_served(agent, &acked).await
}

// (b) Generated: visitors, retries, lost answers, agents who come without having room, crashes.

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A visitor sends the text of that key, which may be a repetition.
    Send { user: usize, key: u8 },
    /// As before, and the answer is lost; the client sends it again.
    LoseAnswer { user: usize, key: u8 },
    /// An agent comes, the assignment crashes before its commit, and the agent leaves.
    Crash,
    /// An agent takes everybody, says nothing, and goes offline with a requeue.
    Requeue,
    /// The wall clock steps, in milliseconds.
    Clock(i64),
}

const USERS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let sent = || (0..USERS, 0..12_u8);
    prop_oneof![
        8 => sent().prop_map(|(user, key)| Step::Send { user, key }),
        2 => sent().prop_map(|(user, key)| Step::LoseAnswer { user, key }),
        1 => Just(Step::Crash),
        1 => Just(Step::Requeue),
        1 => (-300_000..=300_000_i64).prop_map(Step::Clock),
    ]
}

async fn any_sends_to_nobody_are_kept_for_later<B: Backend>() -> Result<(), Violation> {
    let steps = prop::collection::vec(step(), 1..40);
    generated(file!(), B::CASES, &steps, async |steps| {
        let backend = B::start().await;
        check_steps(backend.stores(), &steps).await
    })
}

async fn check_steps(stores: Stores, steps: &[Step]) -> Result<(), Violation> {
    let offline = Offline::new(stores).await;
    let world = &offline.world;
    let mut sessions = Vec::new();
    for user in 0..USERS {
        sessions.push(world.open(&format!("u{user}"), 0).await);
    }
    let mut acked = BTreeMap::new();
    for step in steps {
        match *step {
            Step::Send { user, key } => {
                let message = send(world, &sessions[user], key).await?;
                acked.entry((user, key)).or_insert(message);
            }
            Step::LoseAnswer { user, key } => {
                offline.sending.lose_answer(1);
                let request = request(&sessions[user], key);
                assert!(world.append(&[request]).await.is_err(), "the answer was lost");
                let message = send(world, &sessions[user], key).await?;
                acked.entry((user, key)).or_insert(message);
            }
            Step::Crash => {
                let acked: Vec<_> = acked.values().cloned().collect();
                let agent = offline.check_failed_assignment(&sessions, &acked).await?;
                world.offline(&agent, false).await.expect("offline");
            }
            Step::Requeue => {
                let agent = world.agent("brief", 10).await;
                world.drain().await;
                world.offline(&agent, true).await.expect("offline");
            }
            Step::Clock(ms) => world.clock.step_wall(ms),
        }
        world.drain().await;
    }
    let acked: Vec<_> = acked.into_values().collect();
    offline.check_kept(&sessions, &acked).await?;
    let agent = offline.check_failed_assignment(&sessions, &acked).await?;
    offline.check_served(agent, &acked).await
}

fn request(session: &Session, key: u8) -> kefu_messaging::AppendRequest {
    let key = key.to_string();
    text(session.id, &from_user(&session.user.user_id), &key, &key)
}

async fn send(world: &World, session: &Session, key: u8) -> Result<Arc<Message>, Violation> {
    match world.append_one(request(session, key)).await {
        AppendOutcome::Stored(stored) => Ok(stored.message),
        AppendOutcome::Refused(refusal) => Err(Violation::new(format!("refused: {refusal}"))),
    }
}

// (c) Concurrent.

async fn sends_at_once_to_nobody_are_pending<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_sends_at_once(backend.stores()).await
}

async fn check_sends_at_once(stores: Stores) -> Result<(), Violation> {
    let offline = Offline::new(stores).await;
    let mut sessions = Vec::new();
    for user in 0..5 {
        sessions.push(offline.world.open(&format!("u{user}"), 0).await);
    }
    let acked = race(60, |n| {
        let (world, session) = (offline.world.clone(), sessions[n % 5].clone());
        async move { at_once(&world, n, &session).await }
    })
    .await;
    let acked: Vec<_> = acked.into_iter().flatten().collect();
    assert_eq!(acked.len(), 50, "one task in six sends nothing");
    offline.check_kept(&sessions, &acked).await?;
    let agent = offline.check_failed_assignment(&sessions, &acked).await?;
    offline.check_served(agent, &acked).await
}

/// Five of six send; the sixth is an agent who goes once more, or a pass that finds nobody.
async fn at_once(world: &World, n: usize, session: &Session) -> Option<Arc<Message>> {
    if n % 6 < 5 {
        let key = u8::try_from(n).expect("few");
        return Some(stored(world.append_one(request(session, key)).await).message);
    }
    world.vanish(&admin("gone")).await;
    world.offline(&admin("left"), n % 12 == 5).await.expect("offline");
    world.drain().await;
    None
}

// Shown able to fail.

fn sends(count: u8) -> Vec<Step> {
    (0..count).map(|key| Step::Send { user: 0, key }).collect()
}

/// Each part must fail on such stores.
async fn all_parts_catch<B: Backend>(
    broken: impl Fn(Stores) -> Stores + Send + Sync,
    because: &str,
    steps: &[Step],
) -> Result<(), Violation> {
    let fifty = async |stores| check_fifty_messages(stores, None).await;
    caught_on::<B>(&broken, because, fifty).await?;
    caught_on::<B>(&broken, because, async |stores| check_steps(stores, steps).await).await?;
    caught_on::<B>(&broken, because, check_sends_at_once).await
}

async fn a_message_stored_as_delivered_is_caught<B: Backend>() -> Result<(), Violation> {
    let broken = |stores| pending(stores, PendingFlaw::DeliveredAtAppend);
    all_parts_catch::<B>(broken, "status:", &sends(1)).await
}

async fn an_answer_without_a_row_is_caught<B: Backend>() -> Result<(), Violation> {
    let broken = |stores| pending(stores, PendingFlaw::AnsweredUnwritten);
    all_parts_catch::<B>(broken, "missing:", &sends(7)).await
}

async fn a_line_left_before_the_commit_is_caught<B: Backend>() -> Result<(), Violation> {
    let broken = |stores| line(stores, LineFlaw::LeftBeforeCommit);
    all_parts_catch::<B>(broken, "line:", &[Step::Crash]).await
}

async fn a_table_that_keeps_nothing_pending_is_caught<B: Backend>() -> Result<(), Violation> {
    for (mistake, counted, because) in [
        (SchemaMistake::DeliversAtOnce, "the table counts (50, 0)", "status:"),
        (SchemaMistake::LosesSeventh, "the table counts (43, 43)", "missing:"),
    ] {
        let check = async |stores, sql: &_| check_fifty_messages(stores, Some(sql)).await;
        caught_in_schema::<B>(mistake, counted, check).await?;
        let check = async |stores, _: &_| check_steps(stores, &sends(7)).await;
        caught_in_schema::<B>(mistake, because, check).await?;
        let check = async |stores, _: &_| check_sends_at_once(stores).await;
        caught_in_schema::<B>(mistake, because, check).await?;
    }
    Ok(())
}
