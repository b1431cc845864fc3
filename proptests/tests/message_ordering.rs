//! 2.4 Message ordering: order by id, by time and by position agree under any clock (T1, M6).

use std::collections::BTreeMap;

use kefu_core::SessionId;
use kefu_messaging::{AppendRequest, Message, Sender};
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{CarelessMessages, SendMistake};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_backend, sound};
use kefu_testkit::check::Ledger;
use kefu_testkit::{World, build, race};
use proptest::collection::vec;

on_every_backend!(
    a_hundred_numbered_messages_keep_their_numbers,
    any_batches_under_any_clock_keep_their_order,
    ten_senders_at_once_keep_their_own_order,
    every_mistake_in_turn_is_caught,
    every_mistake_at_once_is_caught,
);

/// The spec's own number and statement.
const NUMBERED: usize = 100;
const CONTENTS: &str = "SELECT content FROM cg_chat_message WHERE session_id = ? ORDER BY id";
/// The boundary is many senders at once.
const SENDERS: usize = 10;
const STEP_MS: i64 = 300_000;

async fn a_hundred_numbered_messages_keep_their_numbers<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_numbered(&backend, &world, &hundred()).await
}

async fn any_batches_under_any_clock_keep_their_order<B: Backend>() -> Result<(), Violation> {
    let batches = vec((1..9_usize, -STEP_MS..STEP_MS), 1..20);
    generated(file!(), B::CASES, &batches, async |batches| {
        let (backend, world) = World::start::<B>().await;
        check_numbered(&backend, &world, &batches).await?;
        let session = world.open("u0", 0).await;
        sound(&Ledger::collect(&world.stores, [session.id], []).await?)
    })
}

async fn ten_senders_at_once_keep_their_own_order<B: Backend>() -> Result<(), Violation> {
    let (_backend, world) = World::start::<B>().await;
    let session = world.open("u0", 0).await;
    let admin = world.agent("a", 1).await;
    let claimed = world.claim(&admin, session.id).await;
    ensure(claimed.is_ok(), || format!("{claimed:?}"))?;
    let people = [build::from_user(&session.user.user_id), build::from_agent(&admin)];
    check_at_once(&world, session.id, &people).await?;
    sound(&Ledger::collect(&world.stores, [session.id], [admin]).await?)
}

async fn every_mistake_in_turn_is_caught<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = CarelessMessages::world::<B>(SendMistake::Nothing).await;
    check_numbered(&backend, &world, &hundred()).await?;
    for (mistake, because) in [
        (SendMistake::ReversesBatch, "by id the numbers are"),
        (SendMistake::TakesTimeFromClock, "order by time"),
        (SendMistake::TakesIdsFromClock, "by id the numbers are"),
    ] {
        let (backend, world) = CarelessMessages::world::<B>(mistake).await;
        caught(check_numbered(&backend, &world, &hundred()).await, because)?;
    }
    Ok(())
}

async fn every_mistake_at_once_is_caught<B: Backend>() -> Result<(), Violation> {
    for (mistake, because) in [
        (SendMistake::Nothing, None),
        (SendMistake::DecidesOutsideLock, Some("positions")),
        (SendMistake::AcksWithoutStoring, Some("0 of 100")),
    ] {
        let (_backend, world) = CarelessMessages::world::<B>(mistake).await;
        let session = world.open("u0", 0).await;
        let sender = build::from_user(&session.user.user_id);
        let checked = check_at_once(&world, session.id, &[sender]).await;
        match because {
            None => checked?,
            Some(because) => caught(checked, because)?,
        }
    }
    Ok(())
}

/// A hundred in batches of one and of four, the clock stepping back and forth between them.
fn hundred() -> Vec<(usize, i64)> {
    let sizes = [1, 4].into_iter().cycle().take(2 * NUMBERED / 5);
    sizes.zip([-STEP_MS, 200_000, STEP_MS, -1].into_iter().cycle()).collect()
}

/// Numbered messages, sent in batches of these sizes with these clock steps after each.
async fn check_numbered<B: Backend>(
    backend: &B,
    world: &World,
    batches: &[(usize, i64)],
) -> Result<(), Violation> {
    let session = world.open("u0", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let mut sent = 0;
    for (size, step) in batches {
        let batch: Vec<_> = (0..*size)
            .map(|number| numbered(session.id, &sender, &(sent + number + 1).to_string()))
            .collect();
        world.append(&batch).await?;
        sent += size;
        world.clock.step_wall(*step);
    }
    let expected: Vec<_> = (1..=sent).map(|number| number.to_string()).collect();
    let by_id = by_id(world, session.id).await;
    let contents: Vec<_> = by_id.iter().map(|message| message.content.clone()).collect();
    ensure(contents == expected, || format!("by id the numbers are {contents:?}"))?;
    check_order(&by_id)?;
    let Some(sql) = backend.sql().await else { return Ok(()) };
    let contents = sql.texts(CONTENTS, session.id.get()).await;
    ensure(contents == expected, || format!("ORDER BY id gives {contents:?}"))
}

/// Each of ten tasks sends ten numbered messages one after the other.
async fn check_at_once(
    world: &World,
    session: SessionId,
    people: &[Sender],
) -> Result<(), Violation> {
    let each = NUMBERED / SENDERS;
    let done = race(SENDERS, |task| {
        let (world, sender) = (world.clone(), people[task % people.len()].clone());
        async move {
            for number in 0..each {
                let text = format!("{task}:{number}");
                world.append(&[numbered(session, &sender, &text)]).await?;
                world.clock.step_wall(if number % 2 == 0 { -STEP_MS } else { STEP_MS });
            }
            Ok::<_, Violation>(())
        }
    });
    done.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let by_id = by_id(world, session).await;
    ensure(!by_id.is_empty(), || format!("0 of {NUMBERED} are stored"))?;
    check_order(&by_id)?;
    ensure(by_id.len() == NUMBERED, || format!("{} of {NUMBERED} are stored", by_id.len()))?;
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    for (task, number) in by_id.iter().filter_map(|message| message.content.split_once(':')) {
        let expected = next.entry(task).or_default();
        ensure(number == expected.to_string(), || format!("task {task}: {number} is early"))?;
        *expected += 1;
    }
    Ok(())
}

fn numbered(session: SessionId, sender: &Sender, text: &str) -> AppendRequest {
    build::text(session, sender, text, text)
}

async fn by_id(world: &World, session: SessionId) -> Vec<Message> {
    let mut messages = world.history(session).await;
    messages.sort_by_key(|message| message.msg_id);
    messages
}

/// Of messages sorted by id.
fn check_order(messages: &[Message]) -> Result<(), Violation> {
    let by_time = messages.is_sorted_by_key(|message| message.create_time);
    ensure(by_time, || "order by time is not order by id".to_owned())?;
    let positions: Vec<_> = messages.iter().map(|message| message.seq.0).collect();
    let gapless = positions.iter().copied().eq(1..=messages.len() as i64);
    ensure(gapless, || format!("by id the positions are {positions:?}"))
}
