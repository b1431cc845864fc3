//! 2.3 Assignment atomicity: an assignment is complete or did not happen (Z2, Q3).

use std::collections::BTreeSet;

use kefu_core::{AdminId, SessionId};
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{Assigning, AssignmentMistake};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_backend, sound};
use kefu_session::{Session, Status};
use kefu_testkit::check::Ledger;
use kefu_testkit::{World, build, race};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use tokio::task::JoinSet;

on_every_backend!(
    an_agent_gone_between_choice_and_write_leaves_the_session_waiting,
    any_interruption_leaves_all_or_nothing,
    any_history_leaves_all_or_nothing,
    a_crowd_at_once_leaves_all_or_nothing,
    every_mistake_is_caught,
);

/// The spec's assertion as a statement.
const WAITING: &str =
    "SELECT COUNT(*) FROM cg_chat_session WHERE id = ? AND status = 0 AND admin_id IS NULL";
const VISITORS: usize = 30;
const AGENTS: usize = 4;
const CAP: u32 = 6;

/// What happens between the choice and the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// The chosen agent takes no more sessions.
    Offline,
    /// The chosen agent's last connection is lost.
    Vanished,
    /// A colleague takes the session.
    Claimed,
    /// The user leaves.
    Ended,
}

const INTERRUPTIONS: [Meanwhile; 5] = [
    Meanwhile::Nothing,
    Meanwhile::Offline,
    Meanwhile::Vanished,
    Meanwhile::Claimed,
    Meanwhile::Ended,
];

async fn an_agent_gone_between_choice_and_write_leaves_the_session_waiting<B: Backend>()
-> Result<(), Violation> {
    let (backend, scene) = Assigning::start::<B>(AssignmentMistake::Nothing).await;
    let session = check_interrupted(&scene, Meanwhile::Offline).await?;
    let Some(sql) = backend.sql().await else { return Ok(()) };
    let waiting = sql.count(WAITING, session.get()).await;
    ensure(waiting == 1, || "the session does not wait without an agent".to_owned())
}

async fn any_interruption_leaves_all_or_nothing<B: Backend>() -> Result<(), Violation> {
    for meanwhile in INTERRUPTIONS {
        let (_backend, scene) = Assigning::start::<B>(AssignmentMistake::Nothing).await;
        check_interrupted(&scene, meanwhile).await?;
    }
    Ok(())
}

/// The choice is one node's, what happens meanwhile another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_interruption_by_another_node_leaves_all_or_nothing() -> Result<(), Violation> {
    for meanwhile in INTERRUPTIONS {
        let (nodes, scene) = Assigning::on_two_nodes(AssignmentMistake::Nothing).await;
        let session = check_interrupted(&scene, meanwhile).await?;
        if meanwhile == Meanwhile::Offline {
            let waiting = nodes.sql.count(WAITING, session.get()).await;
            ensure(waiting == 1, || "the session does not wait without an agent".to_owned())?;
        }
    }
    for (mistake, meanwhile, because) in [
        (AssignmentMistake::DecidesOutsideLock, Meanwhile::Offline, "is active with"),
        (AssignmentMistake::TrustsAvailability, Meanwhile::Vanished, "is active with"),
        (AssignmentMistake::TrustsWaiting, Meanwhile::Claimed, "instead of b"),
        (AssignmentMistake::LosesRecord, Meanwhile::Nothing, "last record names another owner"),
    ] {
        let (_nodes, scene) = Assigning::on_two_nodes(mistake).await;
        caught(check_interrupted(&scene, meanwhile).await.map(|_| ()), because)?;
    }
    Ok(())
}

async fn every_mistake_is_caught<B: Backend>() -> Result<(), Violation> {
    for (mistake, meanwhile, because) in [
        (AssignmentMistake::DecidesOutsideLock, Meanwhile::Offline, "is active with"),
        (AssignmentMistake::DecidesOutsideLock, Meanwhile::Vanished, "is active with"),
        (AssignmentMistake::TrustsAvailability, Meanwhile::Offline, "is active with"),
        (AssignmentMistake::TrustsAvailability, Meanwhile::Vanished, "is active with"),
        (AssignmentMistake::TrustsWaiting, Meanwhile::Claimed, "instead of b"),
        (AssignmentMistake::TrustsWaiting, Meanwhile::Ended, "is active with"),
        (AssignmentMistake::LosesLoad, Meanwhile::Nothing, "has load 0 and owns 1"),
        (AssignmentMistake::LosesSession, Meanwhile::Nothing, "is waiting"),
        (AssignmentMistake::LosesRecord, Meanwhile::Nothing, "last record names another owner"),
    ] {
        let (_backend, scene) = Assigning::start::<B>(mistake).await;
        let checked = check_interrupted(&scene, meanwhile).await;
        caught(checked.map(|_| ()), because)
            .map_err(|other| Violation::new(format!("{mistake:?}, {meanwhile:?}: {other}")))?;
    }
    for (mistake, because) in [
        (AssignmentMistake::LosesLoad, "has load 0 and owns 1"),
        (AssignmentMistake::LosesSession, "has load 1 and owns 0"),
        (AssignmentMistake::LosesRecord, "last record names another owner"),
    ] {
        let (_backend, scene) = Assigning::start::<B>(mistake).await;
        let acts = [Act::Online(0), Act::Open(0), Act::Claim(0, 0)];
        caught(check_history(&scene.world, &acts).await, because)?;
    }
    let (_backend, scene) = Assigning::start::<B>(AssignmentMistake::Nothing).await;
    check_crowd(&scene.world).await?;
    let (_backend, scene) = Assigning::start::<B>(AssignmentMistake::LosesLoad).await;
    caught(check_crowd(&scene.world).await, "has load")
}

/// One visitor, one agent with room, one pass that is interrupted before it writes.
async fn check_interrupted(
    scene: &Assigning,
    meanwhile: Meanwhile,
) -> Result<SessionId, Violation> {
    let Assigning { world, backstage, gate } = scene;
    let session = backstage.open("u", 0).await.id;
    let chosen = backstage.agent("a", 1).await;
    gate.close();
    let mut pass = JoinSet::new();
    let drain = std::sync::Arc::clone(&world.drain);
    pass.spawn(async move { drain.run().await });
    gate.held(1).await;
    interrupt(backstage, meanwhile, &chosen, session).await?;
    gate.open();
    for passed in pass.join_all().await {
        passed?;
    }
    check_outcome(&backstage.session(session).await, meanwhile, &chosen)?;
    let agents = [chosen, build::admin("b")];
    sound(&Ledger::collect(&backstage.stores, [session], agents).await?)?;
    Ok(session)
}

async fn interrupt(
    backstage: &World,
    meanwhile: Meanwhile,
    chosen: &AdminId,
    session: SessionId,
) -> Result<(), Violation> {
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Offline => {
            let gone = backstage.offline(chosen, false).await;
            ensure(gone.is_ok(), || format!("{gone:?}"))?;
        }
        Meanwhile::Vanished => backstage.vanish(chosen).await,
        Meanwhile::Claimed => {
            let colleague = backstage.agent("b", 1).await;
            let claimed = backstage.claim(&colleague, session).await;
            ensure(claimed.is_ok(), || format!("{claimed:?}"))?;
        }
        Meanwhile::Ended => {
            let row = backstage.session(session).await;
            backstage.end_by_user(&row).await;
        }
    }
    Ok(())
}

fn check_outcome(
    session: &Session,
    meanwhile: Meanwhile,
    chosen: &AdminId,
) -> Result<(), Violation> {
    let owner = session.admin_id.as_ref().map(AdminId::as_str);
    let waits = session.status == Status::Waiting && owner.is_none();
    match meanwhile {
        Meanwhile::Offline | Meanwhile::Vanished => {
            ensure(waits, || format!("it is active with {owner:?}, who is gone"))
        }
        Meanwhile::Nothing => {
            ensure(!waits, || format!("it is waiting though {chosen} has room"))?;
            ensure(owner == Some(chosen.as_str()), || format!("it is with {owner:?}"))
        }
        Meanwhile::Claimed => {
            ensure(owner == Some("b"), || format!("it is with {owner:?} instead of b"))
        }
        Meanwhile::Ended => {
            let ended = session.status == Status::Ended;
            ensure(ended, || format!("it is active with {owner:?}, though the user ended it"))
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Open(u8),
    End(u8),
    Claim(u8, u8),
    Online(u8),
    Offline {
        agent: u8,
        requeue: bool,
    },
    Vanish(u8),
    Drain,
    /// The wall clock steps, in milliseconds.
    Step(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let (user, agent) = (0..5_u8, 0..3_u8);
    prop_oneof![
        4 => user.clone().prop_map(Act::Open),
        2 => user.clone().prop_map(Act::End),
        2 => (agent.clone(), user).prop_map(|(agent, user)| Act::Claim(agent, user)),
        3 => agent.clone().prop_map(Act::Online),
        2 => (agent.clone(), any::<bool>())
            .prop_map(|(agent, requeue)| Act::Offline { agent, requeue }),
        1 => agent.prop_map(Act::Vanish),
        3 => Just(Act::Drain),
        1 => (-300_000..300_000_i64).prop_map(Act::Step),
    ]
}

async fn any_history_leaves_all_or_nothing<B: Backend>() -> Result<(), Violation> {
    generated(file!(), B::CASES, &vec(act(), 1..24), async |acts| {
        let (_backend, world) = World::start::<B>().await;
        check_history(&world, &acts).await
    })
}

/// After every act the ledger adds up.
async fn check_history(world: &World, acts: &[Act]) -> Result<(), Violation> {
    let agents: Vec<_> = (0..3).map(|number| build::admin(&format!("a{number}"))).collect();
    for admin in &agents {
        world.connect(&build::agent_info(admin.as_str())).await;
    }
    let mut sessions = BTreeSet::new();
    for act in acts {
        perform(world, &agents, &mut sessions, act).await?;
        let ledger = Ledger::collect(&world.stores, sessions.clone(), agents.clone()).await?;
        sound(&ledger)?;
    }
    Ok(())
}

async fn perform(
    world: &World,
    agents: &[AdminId],
    sessions: &mut BTreeSet<SessionId>,
    act: &Act,
) -> Result<(), Violation> {
    let open = |user: u8| {
        let user = build::user(&format!("u{user}"), 0).user_id;
        async move { world.stores.sessions.find_open(&user).await }
    };
    match *act {
        Act::Open(user) => {
            sessions.insert(world.open(&format!("u{user}"), i64::from(user)).await.id);
        }
        Act::End(user) => {
            if let Some(session) = open(user).await? {
                world.end_by_user(&session).await;
            }
        }
        Act::Claim(agent, user) => {
            if let Some(session) = open(user).await? {
                // Refused when the agent is away or full, or the session is taken.
                let _ = world.claim(&agents[usize::from(agent)], session.id).await;
            }
        }
        Act::Online(agent) => {
            let admin = &agents[usize::from(agent)];
            world.connect(&build::agent_info(admin.as_str())).await;
            world.online(admin, 2).await;
        }
        Act::Offline { agent, requeue } => {
            let gone = world.offline(&agents[usize::from(agent)], requeue).await;
            ensure(gone.is_ok(), || format!("{gone:?}"))?;
        }
        Act::Vanish(agent) => world.vanish(&agents[usize::from(agent)]).await,
        Act::Drain => {
            world.drain.run().await?;
        }
        Act::Step(by) => world.clock.step_wall(by),
    }
    Ok(())
}

async fn a_crowd_at_once_leaves_all_or_nothing<B: Backend>() -> Result<(), Violation> {
    let (_backend, world) = World::start::<B>().await;
    check_crowd(&world).await
}

/// Visitors come, agents come and go, claims and passes run, all at once; then all agents are there.
async fn check_crowd(world: &World) -> Result<(), Violation> {
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        agents.push(world.agent(&format!("a{number}"), CAP).await);
    }
    let opened = race(VISITORS, |number| {
        let (world, admin) = (world.clone(), agents[number % AGENTS].clone());
        async move {
            let session = world.open(&format!("u{number}"), 0).await;
            match number % 3 {
                0 => drop(world.offline(&admin, true).await),
                1 => drop(world.claim(&admin, session.id).await),
                _ => drop(world.online(&admin, CAP).await),
            }
            world.drain.run().await?;
            Ok::<_, Violation>(session.id)
        }
    });
    let sessions = opened.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    for admin in &agents {
        world.online(admin, CAP).await;
    }
    world.drain.run().await?;
    let ledger = Ledger::collect(&world.stores, sessions, agents).await?;
    sound(&ledger)?;
    let waiting = ledger.sessions.iter().filter(|session| session.status == Status::Waiting);
    let (waiting, full) = (waiting.count(), AGENTS * CAP as usize);
    ensure(waiting == VISITORS - full, || format!("{waiting} wait though {full} have a place"))
}
