//! 2.2 Session uniqueness: a user has at most one open session (S1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kefu_core::SessionId;
use kefu_desk::Stores;
use kefu_events::Event;
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{CarelessSessions, OpenMistake};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_backend, sound};
use kefu_session::SessionStore;
use kefu_testkit::check::Ledger;
use kefu_testkit::{Flaky, World, build, race};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

on_every_backend!(
    ten_at_once_are_one_session,
    any_coming_and_going_is_one_session,
    every_mistake_at_once_is_caught,
    every_mistake_in_turn_is_caught,
);

/// The spec's own number and statement.
const AT_ONCE: usize = 10;
const COUNT: &str = "SELECT COUNT(*) FROM cg_chat_session WHERE user_id = ? AND status IN (0,1)";
/// Others who open meanwhile.
const OTHERS: usize = 20;

async fn ten_at_once_are_one_session<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_at_once(&backend, &world, OTHERS).await
}

async fn any_coming_and_going_is_one_session<B: Backend>() -> Result<(), Violation> {
    generated(file!(), B::CASES, &vec(act(), 1..24), async |acts| {
        let (backend, world) = World::start::<B>().await;
        let sessions = check_in_turn(&backend, &world, &acts).await?;
        sound(&Ledger::collect(&world.stores, sessions, [build::admin("a")]).await?)
    })
}

async fn every_mistake_at_once_is_caught<B: Backend>() -> Result<(), Violation> {
    let (backend, world) = CarelessSessions::world::<B>(OpenMistake::Nothing).await;
    check_at_once(&backend, &world, 0).await?;
    for (mistake, because) in [
        (OpenMistake::DecidesOutsideLock, "open sessions of u0"),
        (OpenMistake::ForgetsOpen, "10 open sessions of u0"),
        (OpenMistake::AnnouncesNothing, "announced 0 times"),
    ] {
        let (backend, world) = CarelessSessions::world::<B>(mistake).await;
        caught(check_at_once(&backend, &world, 0).await, because)?;
    }
    Ok(())
}

async fn every_mistake_in_turn_is_caught<B: Backend>() -> Result<(), Violation> {
    let connect = |lost| Act::Connect { user: 0, balance: 1, lost };
    let again = [connect(true), Act::Step(-300_000), connect(false)];
    let (backend, world) = CarelessSessions::world::<B>(OpenMistake::Nothing).await;
    check_in_turn(&backend, &world, &again).await?;
    let (backend, world) = CarelessSessions::world::<B>(OpenMistake::ForgetsOpen).await;
    let checked = check_in_turn(&backend, &world, &again).await;
    caught(checked.map(|_| ()), "a second session")
}

/// Ten openings of one user, among those of others, give one session, announced once.
async fn check_at_once<B: Backend>(
    backend: &B,
    world: &World,
    others: usize,
) -> Result<(), Violation> {
    let answers = race(AT_ONCE + others, |number| {
        let world = world.clone();
        let user = if number < AT_ONCE { 0 } else { number };
        async move { world.try_open(&build::user(&format!("u{user}"), 5)).await }
    });
    let mut open = BTreeSet::new();
    let (mut created, mut announced) = (0, 0);
    for answer in answers.await.into_iter().take(AT_ONCE) {
        let answer = answer?;
        open.insert(answer.session.id);
        created += usize::from(answer.created);
        let opened = |event: &Event| matches!(event, Event::SessionOpened { .. });
        announced += answer.events.iter().filter(|envelope| opened(&envelope.event)).count();
    }
    ensure(open.len() == 1, || format!("{} open sessions of u0", open.len()))?;
    ensure(created == 1, || format!("{created} were told that they opened it"))?;
    ensure(announced == 1, || format!("it is announced {announced} times"))?;
    check_count(backend, "u0").await
}

async fn check_count<B: Backend>(backend: &B, user: &str) -> Result<(), Violation> {
    let Some(sql) = backend.sql().await else { return Ok(()) };
    let count = sql.count(COUNT, user).await;
    ensure(count <= 1, || format!("COUNT of {user} is {count}"))
}

#[derive(Debug, Clone)]
enum Act {
    /// With `lost` the first answer does not arrive, and the client connects again.
    Connect {
        user: u8,
        balance: i64,
        lost: bool,
    },
    /// The agent takes the session, which stays open.
    Claim {
        user: u8,
    },
    End {
        user: u8,
    },
    /// The wall clock steps, in milliseconds.
    Step(i64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_u8, 0..3_i64, any::<bool>())
            .prop_map(|(user, balance, lost)| Act::Connect { user, balance, lost }),
        1 => (0..3_u8).prop_map(|user| Act::Claim { user }),
        2 => (0..3_u8).prop_map(|user| Act::End { user }),
        1 => (-300_000..300_000_i64).prop_map(Act::Step),
    ]
}

/// A connect gets the session that is open, else one that never was before. Gives all sessions.
async fn check_in_turn<B: Backend>(
    backend: &B,
    world: &World,
    acts: &[Act],
) -> Result<BTreeSet<SessionId>, Violation> {
    let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.sessions)));
    let sessions: Arc<dyn SessionStore> = Arc::clone(&flaky) as _;
    let world = &World { stores: Stores { sessions, ..world.stores.clone() }, ..world.clone() };
    let agent = world.agent("a", 10).await;
    let mut open: BTreeMap<u8, SessionId> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for act in acts {
        match *act {
            Act::Connect { user, balance, lost } => {
                let info = build::user(&format!("u{user}"), balance);
                if lost {
                    flaky.lose_answer(1);
                    let answer = world.try_open(&info).await;
                    ensure(answer.is_err(), || "an answer that was lost arrived".to_owned())?;
                    let found = world.stores.sessions.find_open(&info.user_id).await?;
                    let id = found.ok_or_else(|| Violation::new("nothing was opened"))?.id;
                    check_id(&mut open, &mut seen, user, id)?;
                }
                let id = world.try_open(&info).await?.session.id;
                check_id(&mut open, &mut seen, user, id)?;
            }
            Act::Claim { user } => {
                if let Some(id) = open.get(&user) {
                    // Refused when the agent has it already.
                    let _ = world.claim(&agent, *id).await;
                }
            }
            Act::End { user } => {
                if let Some(id) = open.remove(&user) {
                    world.end_by_user(&world.session(id).await).await;
                }
            }
            Act::Step(by) => world.clock.step_wall(by),
        }
        check_open(backend, world, &open).await?;
    }
    Ok(seen)
}

fn check_id(
    open: &mut BTreeMap<u8, SessionId>,
    seen: &mut BTreeSet<SessionId>,
    user: u8,
    id: SessionId,
) -> Result<(), Violation> {
    match open.get(&user) {
        Some(before) => ensure(*before == id, || format!("u{user} got a second session")),
        None => {
            open.insert(user, id);
            ensure(seen.insert(id), || format!("u{user} got an earlier session"))
        }
    }
}

async fn check_open<B: Backend>(
    backend: &B,
    world: &World,
    open: &BTreeMap<u8, SessionId>,
) -> Result<(), Violation> {
    for user in 0..3 {
        let info = build::user(&format!("u{user}"), 0);
        let found = world.stores.sessions.find_open(&info.user_id).await?;
        let found = found.map(|session| session.id);
        ensure(found.as_ref() == open.get(&user), || format!("u{user} has {found:?} open"))?;
        check_count(backend, info.user_id.as_str()).await?;
    }
    Ok(())
}
