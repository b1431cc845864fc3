//! PBT 2.6, load balancing: the least loaded agent gets the next session, ties go to who was without
//! one longest (Z1), and nobody gets more than the cap (CC-03).

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;

use kefu_assignment::AssignmentError;
use kefu_core::{AdminId, SessionId};
use kefu_desk::Stores;
use kefu_proptests::backend::{Backend, Sql};
use kefu_proptests::broken::{LoadFlaw, SchemaMistake, caught_in_schema, caught_on, load};
use kefu_proptests::model::loads::{AGENTS, Act, Loads, Place, act};
use kefu_proptests::{Violation, ensure, generated, in_every_schema, on_every_backend, sound};
use kefu_session::{Session, Status};
use kefu_testkit::build::{admin, agent_caller, agent_info, supervisor_caller};
use kefu_testkit::check::Ledger;
use kefu_testkit::{World, race};

on_every_backend!(
    ten_agents_share_a_hundred_users,
    any_arrivals_ends_and_transfers_go_to_the_least_loaded,
    claims_at_once_stop_at_the_cap,
    everything_at_once_keeps_the_loads,
    a_cap_off_by_one_is_caught,
    an_ignored_load_is_caught,
    ties_by_id_alone_are_caught,
    a_load_that_is_not_given_back_is_caught,
    a_decision_outside_the_lock_is_caught,
);

in_every_schema!(a_table_that_miscounts_loads_is_caught);

// (a) The specification's own falsification.

async fn ten_agents_share_a_hundred_users<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_ten_agents(backend.stores(), backend.sql().await.as_ref()).await
}

async fn check_ten_agents(stores: Stores, sql: Option<&Sql>) -> Result<(), Violation> {
    let world = World::new(stores);
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(world.agent(&format!("a{n}"), 10).await);
    }
    let mut sessions = Vec::new();
    // Half-way the cap cannot be what makes them equal.
    for (round, each) in [(0, 5), (1, 10)] {
        sessions.extend(arrive_at_once(&world, round * 50, 50).await);
        for agent in &agents {
            let load = world.agent_row(agent).await.active_sessions;
            let told = || format!("spread: {agent} has {load} of {} sessions", sessions.len());
            ensure(load == each, told)?;
        }
    }
    if let Some(sql) = sql {
        let each =
            "select cast(count(*) as text) from cg_chat_session where status = ? group by admin_id";
        let counts = sql.texts(each, 1).await;
        ensure(counts == ["10"; 10], || format!("spread: the table counts {counts:?}"))?;
    }
    let late = world.open("late", 1_000).await;
    world.drain().await;
    let waits = world.session(late.id).await.status == Status::Waiting;
    ensure(waits, || "cap: the 101st is served beyond the cap".into())?;
    world.end_by_user(&sessions[17]).await;
    world.drain().await;
    let served = world.session(late.id).await.status == Status::Active;
    ensure(served, || "the 101st still waits beside an agent with room".into())?;
    let all = sessions.iter().map(|session| session.id).chain([late.id]);
    sound(&Ledger::collect(&world.stores, all, agents).await.expect("readable"))
}

async fn arrive_at_once(world: &World, from: usize, count: usize) -> Vec<Session> {
    let sessions = race(count, |n| {
        let world = world.clone();
        async move {
            let session = world.open(&format!("u{}", from + n), 0).await;
            world.drain().await;
            session
        }
    })
    .await;
    world.drain().await;
    sessions
}

// (b) Generated, one act after another, against a plain model.

async fn any_arrivals_ends_and_transfers_go_to_the_least_loaded<B: Backend>()
-> Result<(), Violation> {
    let acts = proptest::collection::vec(act(), 1..30);
    generated(file!(), B::CASES, &acts, async |acts| {
        let backend = B::start().await;
        check_acts(backend.stores(), &acts).await
    })
}

async fn check_acts(stores: Stores, acts: &[Act]) -> Result<(), Violation> {
    let world = World::new(stores);
    let mut model = Loads::default();
    let mut sessions: Vec<Session> = Vec::new();
    for agent in 0..AGENTS {
        for act in [Act::Return(agent), Act::Online(agent, 2)] {
            model.act(act);
            run(&world, act, &mut sessions).await;
        }
    }
    for act in acts {
        let Some(act) = aimed(*act, sessions.len()) else { continue };
        model.act(act);
        run(&world, act, &mut sessions).await;
        world.drain().await;
        compare(&world, &model, &sessions, act).await?;
    }
    Ok(())
}

/// The act with its session drawn from those there are.
fn aimed(act: Act, sessions: usize) -> Option<Act> {
    match act {
        Act::End(session) => Some(Act::End(session.checked_rem(sessions)?)),
        Act::Transfer(session, to) => Some(Act::Transfer(session.checked_rem(sessions)?, to)),
        _ => Some(act),
    }
}

fn name(agent: usize) -> AdminId {
    admin(&format!("a{agent}"))
}

async fn run(world: &World, act: Act, sessions: &mut Vec<Session>) {
    match act {
        Act::Arrive => {
            let user = format!("u{}", sessions.len());
            sessions.push(world.open(&user, 0).await);
        }
        Act::End(session) => drop(world.end_by_user(&sessions[session]).await),
        Act::Transfer(session, to) => {
            let supervisor = supervisor_caller("s1");
            let answer = world.transfer(&supervisor, sessions[session].id, &name(to)).await;
            assert!(matches!(answer, Ok(()) | Err(AssignmentError::Refused(_))), "{answer:?}");
        }
        Act::Online(agent, cap) => drop(world.online(&name(agent), cap).await),
        Act::Offline(agent, requeue) => {
            drop(world.offline(&name(agent), requeue).await.expect("offline"));
        }
        Act::Vanish(agent) => world.vanish(&name(agent)).await,
        Act::Return(agent) => drop(world.connect(&agent_info(&format!("a{agent}"))).await),
        Act::Clock(ms) => world.clock.step_wall(ms),
    }
}

async fn compare(
    world: &World,
    model: &Loads,
    sessions: &[Session],
    act: Act,
) -> Result<(), Violation> {
    for (number, (session, expected)) in sessions.iter().zip(&model.sessions).enumerate() {
        let Session { status, admin_id, .. } = world.session(session.id).await;
        let holds = match expected {
            Place::Waiting => status == Status::Waiting,
            Place::With(agent) => status == Status::Active && admin_id == Some(name(*agent)),
            Place::Ended => status == Status::Ended,
        };
        ensure(holds, || {
            format!(
                "owner: after {act:?} session {number} is {status:?} with {admin_id:?}, not {expected:?}"
            )
        })?;
    }
    for (agent, expected) in model.agents.iter().enumerate() {
        let load = world.agent_row(&name(agent)).await.active_sessions;
        let holds = load == expected.load;
        ensure(holds, || {
            format!("load: after {act:?} agent {agent} has {load}, not {}", expected.load)
        })?;
    }
    Ok(())
}

// (c) Concurrent.

const CLAIMS: usize = 20;

async fn claims_at_once_stop_at_the_cap<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_claims_at_once(backend.stores()).await
}

async fn check_claims_at_once(stores: Stores) -> Result<(), Violation> {
    let world = World::new(stores);
    let agent = world.agent("a1", 3).await;
    let sessions = open_many(&world, CLAIMS).await;
    let answers = race(CLAIMS, |n| {
        let (world, agent, session) = (world.clone(), agent.clone(), sessions[n]);
        async move { world.claim(&agent, session).await }
    })
    .await;
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    ensure(won == 3, || format!("claims: {won} won beside a cap of 3"))?;
    sound(&Ledger::collect(&world.stores, sessions, [agent]).await.expect("readable"))
}

async fn everything_at_once_keeps_the_loads<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_everything_at_once(backend.stores()).await
}

async fn check_everything_at_once(stores: Stores) -> Result<(), Violation> {
    let world = World::new(stores);
    let mut agents = Vec::new();
    for n in 0..5 {
        agents.push(world.agent(&format!("a{n}"), 4).await);
    }
    let early = open_many(&world, 15).await;
    world.drain().await;
    let arrived = race(60, |n| {
        let (world, agents) = (world.clone(), agents.clone());
        let session = early[n % early.len()];
        let (agent, other) = (agents[n % 5].clone(), agents[(n / 5) % 5].clone());
        async move { one_of_many(&world, n, session, &agent, &other).await }
    })
    .await;
    for agent in &agents {
        world.online(agent, 4).await;
    }
    world.drain().await;
    let sessions: BTreeSet<_> = early.into_iter().chain(arrived.into_iter().flatten()).collect();
    let ledger = Ledger::collect(&world.stores, sessions, agents).await.expect("readable");
    sound(&ledger)?;
    let has_room = ledger.agents.iter().any(|(agent, _)| agent.is_eligible());
    let waiting = ledger.line.as_ref().map_or(0, |line| line.total);
    ensure(!has_room || waiting == 0, || format!("{waiting} wait beside an agent with room (Z3)"))?;
    check_all_ended(&world, &ledger).await
}

/// Whatever happened at once, who ends everything gets every load back.
async fn check_all_ended(world: &World, ledger: &Ledger) -> Result<(), Violation> {
    for session in &ledger.sessions {
        let ended = world.end(&supervisor_caller("s1"), session.id).await;
        assert!(ended.is_ok(), "{ended:?}");
    }
    let sessions = ledger.sessions.iter().map(|session| session.id);
    let agents = ledger.agents.iter().map(|(agent, _)| agent.info.admin_id.clone());
    sound(&Ledger::collect(&world.stores, sessions, agents).await.expect("readable"))
}

/// The `n`-th of the acts that run at once; gives the session of an arrival.
async fn one_of_many(
    world: &World,
    n: usize,
    session: SessionId,
    agent: &AdminId,
    other: &AdminId,
) -> Option<SessionId> {
    let refusable = match n % 6 {
        0 | 1 => {
            let opened = world.open(&format!("late{n}"), 0).await;
            world.drain().await;
            return Some(opened.id);
        }
        2 => world.transfer(&agent_caller(agent), session, other).await,
        3 => world.end(&supervisor_caller("s1"), session).await.map(drop),
        4 => world.offline(agent, true).await.map(drop),
        _ => {
            world.online(agent, 4).await;
            Ok(())
        }
    };
    world.drain().await;
    assert!(matches!(refusable, Ok(()) | Err(AssignmentError::Refused(_))), "{refusable:?}");
    None
}

async fn open_many(world: &World, count: usize) -> Vec<SessionId> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(world.open(&format!("u{n}"), 0).await.id);
    }
    ids
}

// Shown able to fail.

const fn with(flaw: LoadFlaw) -> impl Fn(Stores) -> Stores {
    move |stores| load(stores, flaw)
}

async fn a_cap_off_by_one_is_caught<B: Backend>() -> Result<(), Violation> {
    let broken = with(LoadFlaw::CapOffByOne);
    caught_on::<B>(&broken, "cap:", async |stores| check_ten_agents(stores, None).await).await?;
    let acts = [Act::Arrive; 9];
    caught_on::<B>(&broken, "owner:", async |stores| check_acts(stores, &acts).await).await?;
    caught_on::<B>(&broken, "claims: 4", check_claims_at_once).await
}

async fn an_ignored_load_is_caught<B: Backend>() -> Result<(), Violation> {
    // Everybody has one; the last of them loses it, and is the only one without.
    let acts = [&[Act::Arrive; 4][..], &[Act::End(3), Act::Arrive]].concat();
    let check = async |stores| check_acts(stores, &acts).await;
    caught_on::<B>(with(LoadFlaw::LoadIgnored), "owner:", check).await
}

async fn ties_by_id_alone_are_caught<B: Backend>() -> Result<(), Violation> {
    let acts = [Act::Arrive, Act::End(0), Act::Arrive];
    let check = async |stores| check_acts(stores, &acts).await;
    caught_on::<B>(with(LoadFlaw::TiesById), "owner:", check).await
}

async fn a_load_that_is_not_given_back_is_caught<B: Backend>() -> Result<(), Violation> {
    let broken = with(LoadFlaw::LoadKept);
    let spread = async |stores| check_ten_agents(stores, None).await;
    caught_on::<B>(&broken, "still waits", spread).await?;
    let acts = [Act::Arrive, Act::End(0)];
    caught_on::<B>(&broken, "load:", async |stores| check_acts(stores, &acts).await).await?;
    caught_on::<B>(&broken, "has load", check_everything_at_once).await
}

async fn a_decision_outside_the_lock_is_caught<B: Backend>() -> Result<(), Violation> {
    caught_on::<B>(with(LoadFlaw::Unlocked(CLAIMS)), "claims:", check_claims_at_once).await
}

async fn a_table_that_miscounts_loads_is_caught<B: Backend>() -> Result<(), Violation> {
    let once = [Act::Arrive, Act::End(0)];
    for (mistake, spread, at_once) in [
        (SchemaMistake::KeepsLoad, "still waits", "has load"),
        (SchemaMistake::LosesLoad, "spread:", "has load"),
    ] {
        let check = async |stores, sql: &_| check_ten_agents(stores, Some(sql)).await;
        caught_in_schema::<B>(mistake, spread, check).await?;
        caught_in_schema::<B>(mistake, "load:", async |stores, _| check_acts(stores, &once).await)
            .await?;
        let check = async |stores, _: &_| check_everything_at_once(stores).await;
        caught_in_schema::<B>(mistake, at_once, check).await?;
    }
    let check = async |stores, _: &_| check_claims_at_once(stores).await;
    caught_in_schema::<B>(SchemaMistake::LosesLoad, "claims: 20", check).await
}
