//! 2.1 Message idempotency: however often a key is sent, it is one message (T2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kefu_core::{MsgId, SessionId, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{AppendOutcome, AppendVerdict, MessageStore, Stored};
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{CarelessMessages, SendMistake};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_backend, sound};
use kefu_session::Refusal;
use kefu_testkit::check::Ledger;
use kefu_testkit::{Flaky, World, build, race};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

on_every_backend!(
    a_hundred_at_once_are_one_message,
    a_hundred_in_one_batch_are_one_message,
    any_retries_are_one_message,
    every_mistake_at_once_is_caught,
    every_mistake_in_turn_is_caught,
);

/// The spec's own number and statement.
const AT_ONCE: usize = 100;
const COUNT: &str = "SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = ?";

async fn a_hundred_at_once_are_one_message<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_at_once(&backend, &world).await
}

async fn a_hundred_in_one_batch_are_one_message<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_in_one_batch(&backend, &world).await
}

async fn any_retries_are_one_message<B: Backend>() -> Result<(), Violation> {
    generated(file!(), B::CASES, &vec(act(), 1..24), async |acts| {
        let (backend, world) = World::start::<B>().await;
        let sessions = check_in_turn(&backend, &world, &acts).await?;
        sound(&Ledger::collect(&world.stores, sessions, []).await?)
    })
}

async fn every_mistake_at_once_is_caught<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = CarelessMessages::world::<B>(SendMistake::Nothing).await;
    check_at_once(&backend, &world).await?;
    for (mistake, because) in [
        (SendMistake::ForgetsKeys, "one key, 100 messages"),
        (SendMistake::DecidesOutsideLock, "one key, "),
        (SendMistake::AcksWithoutStoring, "one key, 0 messages"),
        (SendMistake::AnswersRepeatsAnew, "were told"),
    ] {
        let (backend, world) = CarelessMessages::world::<B>(mistake).await;
        caught(check_at_once(&backend, &world).await, because)?;
    }
    let (backend, world) = CarelessMessages::world::<B>(SendMistake::Nothing).await;
    check_in_one_batch(&backend, &world).await?;
    let (backend, world) = CarelessMessages::world::<B>(SendMistake::ForgetsBatch).await;
    caught(check_in_one_batch(&backend, &world).await, "one key, ")
}

async fn every_mistake_in_turn_is_caught<B: Backend>() -> Result<(), Violation> {
    let send = |user, content, lost| Act::Send { user, key: 0, content, lost };
    let repeat = [
        send(0, 0, true),
        Act::Step(-300_000),
        send(0, 0, false),
        send(0, 1, false),
        send(1, 0, false),
    ];
    let (backend, world) = CarelessMessages::world::<B>(SendMistake::Nothing).await;
    check_in_turn(&backend, &world, &repeat).await?;
    for (mistake, because) in [
        (SendMistake::ForgetsKeys, "got another message"),
        (SendMistake::AnswersRepeatsAnew, "got another message"),
        (SendMistake::TakesOtherContent, "other content"),
        (SendMistake::MixesSenders, "k0 of u1 is stored 0 times"),
        (SendMistake::AcksWithoutStoring, "is stored 0 times"),
    ] {
        let (backend, world) = CarelessMessages::world::<B>(mistake).await;
        // What is not stored answers every repeat anew: only a key sent once shows the loss itself.
        let acts = if mistake == SendMistake::AcksWithoutStoring { &repeat[2..3] } else { &repeat };
        caught(check_in_turn(&backend, &world, acts).await.map(|_| ()), because)?;
    }
    Ok(())
}

/// Everybody who sends the key at once is told the one message that is stored.
async fn check_at_once<B: Backend>(backend: &B, world: &World) -> Result<(), Violation> {
    let session = world.open("u0", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let request = build::text(session.id, &sender, "k", "hello");
    let answers = race(AT_ONCE, |_| {
        let (world, request) = (world.clone(), request.clone());
        async move { world.append(&[request]).await }
    });
    let mut outcomes = Vec::new();
    for answer in answers.await {
        outcomes.extend(answer?.outcomes);
    }
    check_one(backend, world, session.id, outcomes).await
}

/// As [`check_at_once`], for repeats that share a commit.
async fn check_in_one_batch<B: Backend>(backend: &B, world: &World) -> Result<(), Violation> {
    let session = world.open("u0", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let batch = vec![build::text(session.id, &sender, "k", "hello"); AT_ONCE];
    let verdict = world.append(&batch).await?;
    check_one(backend, world, session.id, verdict.outcomes).await
}

async fn check_one<B: Backend>(
    backend: &B,
    world: &World,
    session: SessionId,
    outcomes: Vec<AppendOutcome>,
) -> Result<(), Violation> {
    ensure(outcomes.len() == AT_ONCE, || format!("{} answers", outcomes.len()))?;
    let mut told = BTreeSet::new();
    let mut fresh = 0;
    for outcome in outcomes {
        let Stored { message, duplicate } = stored(outcome)?;
        told.insert(message.msg_id);
        fresh += usize::from(!duplicate);
    }
    let rows = world.history(session).await;
    ensure(rows.len() == 1, || format!("one key, {} messages", rows.len()))?;
    ensure(told.iter().eq([&rows[0].msg_id]), || format!("{told:?} were told"))?;
    ensure(fresh == 1, || format!("{fresh} were told that theirs was the first"))?;
    check_count(backend, rows[0].msg_id).await
}

async fn check_count<B: Backend>(backend: &B, id: MsgId) -> Result<(), Violation> {
    let Some(sql) = backend.sql().await else { return Ok(()) };
    let count = sql.count(COUNT, id.get()).await;
    ensure(count == 1, || format!("COUNT of {id} is {count}"))
}

#[derive(Debug, Clone)]
enum Act {
    /// With `lost` the first answer does not arrive, and the sender repeats.
    Send { user: u8, key: u8, content: u8, lost: bool },
    /// The user's session ends and another begins.
    Reopen { user: u8 },
    /// The wall clock steps, in milliseconds.
    Step(i64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..3_u8, 0..4_u8, 0..2_u8, any::<bool>())
            .prop_map(|(user, key, content, lost)| Act::Send { user, key, content, lost }),
        1 => (0..3_u8).prop_map(|user| Act::Reopen { user }),
        1 => (-300_000..300_000_i64).prop_map(Act::Step),
    ]
}

/// Every send is answered as its key's first one was; in the end each key is one message. Gives the
/// sessions.
async fn check_in_turn<B: Backend>(
    backend: &B,
    world: &World,
    acts: &[Act],
) -> Result<BTreeSet<SessionId>, Violation> {
    let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
    let messages: Arc<dyn MessageStore> = Arc::clone(&flaky) as _;
    let world = &World { stores: Stores { messages, ..world.stores.clone() }, ..world.clone() };
    let mut first: BTreeMap<(u8, u8), (u8, MsgId)> = BTreeMap::new();
    let mut sessions = BTreeSet::new();
    for act in acts {
        match *act {
            Act::Send { user, key, content, lost } => {
                sessions.insert(world.open(&format!("u{user}"), 0).await.id);
                if lost {
                    flaky.lose_answer(1);
                    let answer = send(world, user, key, content).await;
                    ensure(answer.is_err(), || "an answer that was lost arrived".to_owned())?;
                }
                let answer = outcome(send(world, user, key, content).await?)?;
                check_answer(&mut first, (user, key), content, answer)?;
            }
            Act::Reopen { user } => {
                let session = world.open(&format!("u{user}"), 0).await;
                world.end_by_user(&session).await;
                sessions.extend([session.id, world.open(&format!("u{user}"), 0).await.id]);
            }
            Act::Step(by) => world.clock.step_wall(by),
        }
    }
    check_rows(backend, world, &sessions, &first).await?;
    Ok(sessions)
}

async fn send(world: &World, user: u8, key: u8, content: u8) -> Result<AppendVerdict, StoreFault> {
    let user = build::user(&format!("u{user}"), 0).user_id;
    world.append(&[build::text_to_open(&user, &format!("k{key}"), &content.to_string())]).await
}

fn check_answer(
    first: &mut BTreeMap<(u8, u8), (u8, MsgId)>,
    key: (u8, u8),
    content: u8,
    answer: AppendOutcome,
) -> Result<(), Violation> {
    let (told, msg_id) = match first.get(&key) {
        Some((before, _)) if *before != content => {
            let refused = answer == AppendOutcome::Refused(Refusal::Conflict);
            return ensure(refused, || format!("{key:?} with other content: {answer:?}"));
        }
        Some((_, msg_id)) => (stored(answer)?.message.msg_id, *msg_id),
        None => {
            let msg_id = stored(answer)?.message.msg_id;
            first.insert(key, (content, msg_id));
            (msg_id, msg_id)
        }
    };
    ensure(told == msg_id, || format!("the repeat of {key:?} got another message"))
}

async fn check_rows<B: Backend>(
    backend: &B,
    world: &World,
    sessions: &BTreeSet<SessionId>,
    first: &BTreeMap<(u8, u8), (u8, MsgId)>,
) -> Result<(), Violation> {
    let mut rows = Vec::new();
    for session in sessions {
        rows.extend(world.history(*session).await);
    }
    for ((user, key), (_, msg_id)) in first {
        let (user, key) = (format!("u{user}"), format!("k{key}"));
        let mine = rows.iter().filter(|row| {
            row.sender.id() == user && row.client_msg_id.as_str() == key && row.msg_id == *msg_id
        });
        let count = mine.count();
        ensure(count == 1, || format!("{key} of {user} is stored {count} times"))?;
        check_count(backend, *msg_id).await?;
    }
    ensure(rows.len() == first.len(), || format!("{} rows of {} keys", rows.len(), first.len()))
}

fn outcome(mut verdict: AppendVerdict) -> Result<AppendOutcome, Violation> {
    verdict.outcomes.pop().ok_or_else(|| Violation::new("no answer"))
}

fn stored(outcome: AppendOutcome) -> Result<Stored, Violation> {
    match outcome {
        AppendOutcome::Stored(stored) => Ok(stored),
        AppendOutcome::Refused(refusal) => Err(Violation::new(format!("refused: {refusal}"))),
    }
}
