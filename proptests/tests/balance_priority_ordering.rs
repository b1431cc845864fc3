//! PBT 2.8, balance priority: the line is served by balance, of equals who came first (Q1, CC-15),
//! with ageing where it is set.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::cmp::Reverse;
use std::time::Duration;

use kefu_assignment::Outcome;
use kefu_core::{AdminId, Balance, UserInfo};
use kefu_desk::Stores;
use kefu_proptests::backend::{Backend, Sql};
use kefu_proptests::broken::{LineFlaw, SchemaMistake, caught_in_schema, caught_on, line};
use kefu_proptests::{Violation, ensure, generated, in_every_schema, on_every_backend, sound};
use kefu_session::{Session, Status, decide_open};
use kefu_testkit::build::user;
use kefu_testkit::check::Ledger;
use kefu_testkit::{World, race};
use proptest::prelude::*;

on_every_backend!(
    five_visitors_are_served_by_balance,
    any_line_is_served_by_balance_age_and_arrival,
    a_line_made_and_served_at_once_keeps_the_order,
    an_order_of_arrival_alone_is_caught,
    newest_first_among_equals_is_caught,
    the_smallest_first_is_caught,
    waiting_that_counts_for_nothing_is_caught,
);

in_every_schema!(a_table_with_other_priorities_is_caught);

// (a) The specification's own falsification.

const BALANCES: [i64; 5] = [100, 500, 200, 500, 300];

async fn five_visitors_are_served_by_balance<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_five_visitors(backend.stores(), backend.sql().await.as_ref()).await
}

async fn check_five_visitors(stores: Stores, sql: Option<&Sql>) -> Result<(), Violation> {
    let world = World::new(stores);
    let mut sessions = Vec::new();
    for (n, balance) in BALANCES.into_iter().enumerate() {
        sessions.push(world.open(&format!("u{n}"), balance).await);
    }
    if let Some(sql) = sql {
        let order =
            "select user_id from cg_chat_session where status = ? order by balance desc, id";
        let users = sql.texts(order, 0).await;
        ensure(users == ["u1", "u3", "u4", "u2", "u0"], || format!("order: stored as {users:?}"))?;
    }
    let agent = world.agent("a1", 1).await;
    let mut served = Vec::new();
    for _ in BALANCES {
        let Some(session) = next(&world, &agent).await else { break };
        served.push(session.user.name.clone());
        world.end_by_user(&session).await;
    }
    // 500 (first), 500 (second), 300, 200, 100.
    ensure(served == ["u1", "u3", "u4", "u2", "u0"], || format!("order: served {served:?}"))
}

/// Whom the agent, who has room for one, gets from the next pass.
async fn next(world: &World, agent: &AdminId) -> Option<Session> {
    world.drain().await;
    world.stores.sessions.list_owned(agent).await.expect("readable").into_iter().next()
}

// (b) Generated: balances with ties, debts and extremes, arrivals while others are served, refreshed
// balances, requeues, ageing.

#[derive(Debug, Clone)]
enum Step {
    /// After so many minutes somebody comes.
    Arrive { balance: Option<i64>, minutes: u64 },
    /// Somebody who waits connects again with another balance.
    Refresh { who: usize, balance: i64 },
    /// The agent takes the next and ends it.
    Serve,
    /// The agent takes the next and gives it back.
    Requeue,
    /// The wall clock steps, in milliseconds; only where waiting counts for nothing.
    Clock(i64),
}

fn balance() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -3..=3_i64,
        2 => -1_000..=1_000_i64,
        1 => prop::sample::select(vec![-1_000_000_000_000, 1_000_000_000_000]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (prop::option::weighted(0.9, balance()), 0..4_u64)
            .prop_map(|(balance, minutes)| Step::Arrive { balance, minutes }),
        2 => (any::<usize>(), balance()).prop_map(|(who, balance)| Step::Refresh { who, balance }),
        2 => Just(Step::Serve),
        1 => Just(Step::Requeue),
        1 => (-300_000..=300_000_i64).prop_map(Step::Clock),
    ]
}

/// Minor units a minute.
fn ageing() -> impl Strategy<Value = i64> {
    prop_oneof![2 => Just(0_i64), 1 => 1..=500_i64]
}

async fn any_line_is_served_by_balance_age_and_arrival<B: Backend>() -> Result<(), Violation> {
    let scripts = (ageing(), prop::collection::vec(step(), 1..25));
    generated(file!(), B::CASES, &scripts, async |(ageing, steps)| {
        let backend = B::start().await;
        check_script(backend.stores(), ageing, &steps).await
    })
}

/// Who waits, as the model sees it.
#[derive(Debug, Clone)]
struct Waiting {
    number: usize,
    balance: i64,
    since_minute: i64,
}

struct Script {
    world: World,
    agent: AdminId,
    ageing: i64,
    minute: i64,
    arrived: usize,
    waiting: Vec<Waiting>,
}

async fn check_script(stores: Stores, ageing: i64, steps: &[Step]) -> Result<(), Violation> {
    let world = World::new(stores);
    let agent = world.agent("a1", 1).await;
    let mut script = Script { world, agent, ageing, minute: 0, arrived: 0, waiting: Vec::new() };
    for step in steps {
        script.step(step).await?;
    }
    while !script.waiting.is_empty() {
        script.step(&Step::Serve).await?;
    }
    Ok(())
}

impl Script {
    async fn step(&mut self, step: &Step) -> Result<(), Violation> {
        match step {
            Step::Clock(ms) if self.ageing == 0 => self.world.clock.step_wall(*ms),
            // How long somebody waited is what the wall clock says (Q1).
            Step::Clock(_) => {}
            Step::Arrive { balance, minutes } => {
                self.world.clock.advance(Duration::from_secs(60 * minutes));
                self.minute += i64::try_from(*minutes).expect("few");
                let number = self.arrived;
                self.arrived += 1;
                self.open(number, *balance).await;
                let balance = balance.unwrap_or(0);
                self.waiting.push(Waiting { number, balance, since_minute: self.minute });
            }
            Step::Refresh { who, balance } => {
                let Some(index) = who.checked_rem(self.waiting.len()) else { return Ok(()) };
                self.waiting[index].balance = *balance;
                self.open(self.waiting[index].number, Some(*balance)).await;
            }
            Step::Serve => {
                let Some(session) = self.take_next().await? else { return Ok(()) };
                self.waiting.retain(|waiting| session.user.name != format!("u{}", waiting.number));
                self.world.end_by_user(&session).await;
            }
            Step::Requeue => {
                if self.take_next().await?.is_some() {
                    self.world.offline(&self.agent, true).await.expect("offline");
                    self.world.online(&self.agent, 1).await;
                }
            }
        }
        Ok(())
    }

    async fn open(&self, number: usize, balance: Option<i64>) {
        let visitor = user(&format!("u{number}"), 0);
        let visitor = UserInfo { balance: balance.map(Balance), ..visitor };
        let (context, ids, ageing) = (self.world.context(), self.world.ids.as_ref(), self.ageing);
        let decide = |open: Option<&Session>, ids: &dyn kefu_core::IdSource| {
            decide_open(open, &visitor, "web", ageing, &context, ids)
        };
        let opened = self.world.stores.sessions.open(&visitor.user_id, &decide, ids).await;
        drop(opened.expect("opened"));
    }

    /// Takes the next, who must be the one the model names.
    async fn take_next(&self) -> Result<Option<Session>, Violation> {
        let best = self.waiting.iter().min_by_key(|waiting| {
            let waited = self.minute - waiting.since_minute;
            (Reverse(waiting.balance + self.ageing * waited), waiting.number)
        });
        let got = next(&self.world, &self.agent).await;
        let expected = best.map(|waiting| format!("u{}", waiting.number));
        let name = got.as_ref().map(|session| session.user.name.clone());
        ensure(name == expected, || {
            format!("order: got {name:?} instead of {expected:?} of {:?}", self.waiting)
        })?;
        Ok(got)
    }
}

// (c) Concurrent.

async fn a_line_made_and_served_at_once_keeps_the_order<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_line_at_once(backend.stores()).await
}

async fn check_line_at_once(stores: Stores) -> Result<(), Violation> {
    let world = World::new(stores);
    let opened = race(50, |n| {
        let world = world.clone();
        // Ten balances, five visitors each.
        async move { world.open(&format!("u{n}"), (n as i64 * 7) % 10 - 5).await }
    })
    .await;
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(world.agent(&format!("a{n}"), 1).await);
    }
    for _ in 0..5 {
        race(10, |n| {
            let (world, agent) = (world.clone(), agents[n].clone());
            async move {
                if let Some(session) = next(&world, &agent).await {
                    world.end_by_user(&session).await;
                }
            }
        })
        .await;
    }
    world.drain().await;
    while end_all(&world, &agents).await > 0 {
        world.drain().await;
    }
    let ledger = Ledger::collect(&world.stores, opened.iter().map(|session| session.id), agents);
    let ledger = ledger.await.expect("readable");
    check_served_order(&ledger)?;
    sound(&ledger)
}

/// Ends what the agents have; says how many sessions that was.
async fn end_all(world: &World, agents: &[AdminId]) -> usize {
    let mut ended = 0;
    for agent in agents {
        for session in world.stores.sessions.list_owned(agent).await.expect("readable") {
            world.end_by_user(&session).await;
            ended += 1;
        }
    }
    ended
}

/// The records of the assignments, in the order in which they were made, are the line.
fn check_served_order(ledger: &Ledger) -> Result<(), Violation> {
    let mut served = Vec::new();
    for session in &ledger.sessions {
        ensure(session.status == Status::Ended, || format!("{} was never served", session.id))?;
        let records = &ledger.records[&session.id];
        let given = records.iter().find(|record| record.outcome == Outcome::Assigned);
        let balance = session.balance.map_or(0, |balance| balance.0);
        served.push((given.map(|record| record.id), Reverse(balance), session.id));
    }
    served.sort_by_key(|(record, ..)| *record);
    let in_order = served.is_sorted_by_key(|(_, balance, id)| (*balance, *id));
    ensure(in_order, || format!("order: served {served:?}"))
}

// Shown able to fail.

fn arrive(balance: i64, minutes: u64) -> Step {
    Step::Arrive { balance: Some(balance), minutes }
}

/// Each part must fail on a line with that flaw, the generated one for two arrivals.
async fn all_parts_catch<B: Backend>(flaw: LineFlaw, balances: [i64; 2]) -> Result<(), Violation> {
    let broken = |stores| line(stores, flaw);
    let five = async |stores| check_five_visitors(stores, None).await;
    caught_on::<B>(broken, "order:", five).await?;
    let steps = balances.map(|balance| arrive(balance, 0));
    caught_on::<B>(broken, "order:", async |stores| check_script(stores, 0, &steps).await).await?;
    caught_on::<B>(broken, "order:", check_line_at_once).await
}

async fn an_order_of_arrival_alone_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(LineFlaw::ByArrival, [1, 2]).await
}

async fn newest_first_among_equals_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(LineFlaw::NewestTieFirst, [1, 1]).await
}

async fn the_smallest_first_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(LineFlaw::Ascending, [-1, 1]).await
}

async fn waiting_that_counts_for_nothing_is_caught<B: Backend>() -> Result<(), Violation> {
    // 0 since ten minutes at 10 a minute beats 99.
    let steps = [arrive(0, 0), arrive(99, 10)];
    let check = async |stores| check_script(stores, 10, &steps).await;
    caught_on::<B>(|stores| line(stores, LineFlaw::AgeingIgnored), "order:", check).await
}

async fn a_table_with_other_priorities_is_caught<B: Backend>() -> Result<(), Violation> {
    let steps = [arrive(-1, 0), arrive(1, 0)];
    for mistake in [SchemaMistake::EvensPriority, SchemaMistake::TurnsPriority] {
        let check = async |stores, sql: &_| check_five_visitors(stores, Some(sql)).await;
        caught_in_schema::<B>(mistake, "order: served", check).await?;
        let check = async |stores, _: &_| check_script(stores, 0, &steps).await;
        caught_in_schema::<B>(mistake, "order:", check).await?;
        let check = async |stores, _: &_| check_line_at_once(stores).await;
        caught_in_schema::<B>(mistake, "order:", check).await?;
    }
    Ok(())
}
