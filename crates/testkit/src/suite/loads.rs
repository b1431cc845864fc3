//! `AssignmentStore` under the real rules: whatever runs at once, the load is the count, within the
//! cap, and a session has one owner (2.6, CC-03, Z1–Z7).

use std::collections::BTreeSet;

use kefu_assignment::{Outcome, Snapshot, Verdict, decide_pass, plan_pass, scope_of};
use kefu_core::{AdminId, Caller, IdSource, SessionId};
use kefu_session::{Refusal, Session, Status};
use rand::RngExt;

use crate::build::{agent_caller, agent_info, supervisor_caller, user_caller};
use crate::check::Ledger;
use crate::{Harness, World, race, seeded};

/// 2.6: ten agents, a hundred users at once: ten each; the 101st waits until somebody ends.
pub async fn a_hundred_users_spread_over_ten_agents<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(world.agent(&format!("a{n}"), 10).await);
    }
    let opened = race(100, |n| {
        let world = world.clone();
        async move {
            let session = world.open(&format!("u{n}"), 0).await;
            world.drain().await;
            session
        }
    })
    .await;
    world.drain().await;
    for agent in &agents {
        assert_eq!(world.agent_row(agent).await.active_sessions, 10);
    }
    let late = world.open("late", 1_000).await;
    assert_eq!(world.drain().await, 0);
    assert_eq!(world.session(late.id).await.status, Status::Waiting);
    world.end_by_user(&opened[17]).await;
    assert_eq!(world.drain().await, 1);
    assert_eq!(world.session(late.id).await.status, Status::Active);
    let all = opened.iter().map(|session| session.id).chain([late.id]);
    Ledger::collect(&world.stores, all, agents).await.unwrap().assert_sound();
}

/// CC-15: served by balance, then first come.
pub async fn the_line_is_served_by_balance<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut opened = Vec::new();
    for (n, balance) in [100, 500, 200, 500, 300].into_iter().enumerate() {
        opened.push(world.open(&format!("u{n}"), balance).await);
    }
    let admin = world.agent("a1", 1).await;
    let mut served = Vec::new();
    for _ in 0..5 {
        assert_eq!(world.drain().await, 1);
        let owned = world.stores.sessions.list_owned(&admin).await.unwrap();
        served.push(owned[0].id);
        world.end_by_user(&owned[0]).await;
    }
    assert_eq!(served, [1, 3, 4, 2, 0].map(|n: usize| opened[n].id));
}

/// Z6: of many claims of one session one wins; the others get `conflict`.
pub async fn one_claim_of_a_session_wins<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(world.agent(&format!("a{n}"), 1).await);
    }
    let answers = race(10, |n| {
        let (world, admin) = (world.clone(), agents[n].clone());
        async move { world.claim(&admin, session.id).await }
    })
    .await;
    let won: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(won.len(), 1);
    for answer in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert_eq!(*answer, Refusal::Conflict.into());
    }
    assert_eq!(&world.session(session.id).await, won[0]);
    Ledger::collect(&world.stores, [session.id], agents).await.unwrap().assert_sound();
}

/// CC-03: one agent who claims everything at once stops at the cap.
pub async fn claims_stop_at_the_cap<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 3).await;
    let sessions = open_many(&world, 20).await;
    let answers = race(20, |n| {
        let (world, admin, id) = (world.clone(), admin.clone(), sessions[n]);
        async move { world.claim(&admin, id).await }
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    let refused = |answer: &&Result<Session, _>| **answer == Err(Refusal::AgentUnavailable.into());
    assert_eq!(answers.iter().filter(refused).count(), 17);
    Ledger::collect(&world.stores, sessions, [admin]).await.unwrap().assert_sound();
}

/// S4: ended by everybody at once: one end, one record, the load given back once.
pub async fn many_ends_are_one_end<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 3).await;
    let (ended, kept) = (world.open("u1", 0).await, world.open("u2", 0).await);
    world.drain().await;
    let callers = [user_caller(&ended.user.user_id), agent_caller(&admin), supervisor_caller("s1")];
    let answers = race(30, |n| {
        let (world, caller) = (world.clone(), callers[n % 3].clone());
        async move { world.end(&caller, ended.id).await.unwrap() }
    })
    .await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(world.agent_row(&admin).await.active_sessions, 1);
    let ledger = Ledger::collect(&world.stores, [ended.id, kept.id], [admin]).await.unwrap();
    ledger.assert_sound();
    let ends = world.outbox_of(&format!("session:{}", ended.id)).await;
    assert_eq!(ends.iter().filter(|row| row.event.kind() == "session_ended").count(), 1);
}

/// Z5: everybody hands to one colleague with room for two: two arrive, nobody is lost.
pub async fn transfers_stop_at_the_targets_cap<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (sessions, sources) = pairs(&world, 12).await;
    let target = world.agent("target", 2).await;
    let answers = race(12, |n| {
        let (world, target, id) = (world.clone(), target.clone(), sessions[n]);
        let caller = agent_caller(&sources[n]);
        async move { world.transfer(&caller, id, &target).await }
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    let all = sources.into_iter().chain([target.clone()]);
    assert_eq!(world.agent_row(&target).await.active_sessions, 2);
    Ledger::collect(&world.stores, sessions, all).await.unwrap().assert_sound();
}

/// S4: the same transfer many times is one transfer.
pub async fn a_repeated_transfer_has_one_effect<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (sessions, sources) = pairs(&world, 1).await;
    let target = world.agent("target", 5).await;
    let answers = race(10, |_| {
        let (world, target, id) = (world.clone(), target.clone(), sessions[0]);
        let caller = agent_caller(&sources[0]);
        async move { world.transfer(&caller, id, &target).await }
    })
    .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let records = world.stores.assignments.list_records(sessions[0]).await.unwrap();
    let moved = records.iter().filter(|record| record.outcome == Outcome::Transferred).count();
    assert_eq!(moved, 1);
    let all = sources.into_iter().chain([target]);
    Ledger::collect(&world.stores, sessions, all).await.unwrap().assert_sound();
}

/// Two agents who swap sessions at once lock in one order and do not deadlock.
pub async fn opposite_transfers_do_not_deadlock<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (a, b) = (world.agent("a", 10).await, world.agent("b", 10).await);
    let sessions = open_many(&world, 16).await;
    for (n, id) in sessions.iter().enumerate() {
        world.claim(if n % 2 == 0 { &a } else { &b }, *id).await.unwrap();
    }
    race(16, |n| {
        let (from, to) = if n % 2 == 0 { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
        let (world, id) = (world.clone(), sessions[n]);
        async move {
            let answer = world.transfer(&agent_caller(&from), id, &to).await;
            assert!(matches!(answer, Ok(()) | Err(_)));
        }
    })
    .await;
    Ledger::collect(&world.stores, sessions, [a, b]).await.unwrap().assert_sound();
}

/// 2.3: an agent who goes offline between choice and write leaves the session waiting.
pub async fn an_agent_lost_between_choice_and_write_gets_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 5).await;
    let session = world.open("u1", 0).await;
    commit_after_loss(&world, &admin, session.id, Loss::Offline).await;
    world.online(&admin, 5).await;
    commit_after_loss(&world, &admin, session.id, Loss::Reconnected).await;
    assert_eq!(world.drain().await, 1, "and the next pass serves it");
}

#[derive(Clone, Copy)]
enum Loss {
    Offline,
    /// Gone and back: live again, in another life (`live_gen`).
    Reconnected,
}

/// Plans, lets the agent go, then commits the plan: nothing may come of it.
async fn commit_after_loss(world: &World, admin: &AdminId, session: SessionId, loss: Loss) {
    let heads = world.stores.line.front(64).await.unwrap().sessions;
    let candidates = world.stores.agents.list_eligible(64).await.unwrap();
    let plan = plan_pass(&heads, &candidates);
    assert_eq!(plan.len(), 1);
    match loss {
        Loss::Offline => drop(world.offline(admin, false).await.unwrap()),
        Loss::Reconnected => {
            world.vanish(admin).await;
            world.connect(&agent_info(admin.as_str())).await;
        }
    }
    let context = world.context();
    let decide =
        |snapshot: &Snapshot, ids: &dyn IdSource| decide_pass(snapshot, &plan, &context, ids);
    let verdict = world.transact(&scope_of(&plan), &decide).await.unwrap();
    assert!(matches!(verdict, Verdict::Apply(change) if change.is_empty()));
    let session = world.session(session).await;
    assert_eq!((session.status, session.admin_id), (Status::Waiting, None));
}

/// Z7: going offline with `requeue` under passes and claims loses no session and no load.
pub async fn requeues_race_with_passes<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (a, b) = (world.agent("a", 10).await, world.agent("b", 10).await);
    let sessions = open_many(&world, 15).await;
    race(24, |n| {
        let (world, a, b) = (world.clone(), a.clone(), b.clone());
        async move {
            match n % 4 {
                0 => drop(world.offline(&a, true).await),
                1 => drop(world.online(&a, 10).await),
                2 => drop(world.drain().await),
                _ => drop(world.offline(&b, n % 8 == 3).await),
            }
        }
    })
    .await;
    Ledger::collect(&world.stores, sessions.clone(), [a.clone(), b.clone()])
        .await
        .unwrap()
        .assert_sound();
    world.online(&a, 10).await;
    world.online(&b, 10).await;
    world.drain().await;
    assert_eq!(world.stores.line.front(1).await.unwrap().total, 0, "Z3: nobody waits beside room");
    Ledger::collect(&world.stores, sessions, [a, b]).await.unwrap().assert_sound();
}

/// Everything at once, drawn by chance: the ledger adds up, also after a restart.
pub async fn any_acts_at_once_keep_the_ledger<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let mut random = seeded("any_acts_at_once_keep_the_ledger");
    let mut agents = Vec::new();
    for n in 0..4 {
        agents.push(world.agent(&format!("a{n}"), 4).await);
    }
    let sessions = open_many(&world, 24).await;
    for _ in 0..3 {
        let acts: Vec<Act> = (0..60).map(|_| Act::draw(&sessions, &agents, &mut random)).collect();
        race(acts.len(), |n| {
            let (world, act) = (world.clone(), acts[n].clone());
            async move { act.run(&world).await }
        })
        .await;
        let ledger = Ledger::collect(&world.stores, sessions.clone(), agents.clone()).await;
        ledger.unwrap().assert_sound();
    }
    let world = world.restarted(&mut harness).await;
    Ledger::collect(&world.stores, sessions, agents).await.unwrap().assert_sound();
}

#[derive(Debug, Clone)]
enum Act {
    Claim(AdminId, SessionId),
    Transfer(Caller, SessionId, AdminId),
    End(SessionId),
    Offline(AdminId, bool),
    Online(AdminId),
    Drain,
}

impl Act {
    fn draw(sessions: &[SessionId], agents: &[AdminId], random: &mut rand::rngs::StdRng) -> Self {
        let session = sessions[random.random_range(0..sessions.len())];
        let mut agent = || agents[random.random_range(0..agents.len())].clone();
        let (agent, other) = (agent(), agent());
        match random.random_range(0..12) {
            0..=2 => Self::Claim(agent, session),
            3..=4 => Self::Transfer(agent_caller(&agent), session, other),
            5 => Self::Transfer(supervisor_caller("s1"), session, other),
            6 => Self::End(session),
            7 => Self::Offline(agent, random.random_bool(0.5)),
            8..=9 => Self::Online(agent),
            _ => Self::Drain,
        }
    }

    /// Refusals are part of the game; faults are not.
    async fn run(&self, world: &World) {
        use kefu_assignment::AssignmentError::Refused;
        let answer = match self {
            Self::Claim(admin, session) => world.claim(admin, *session).await.map(drop),
            Self::Transfer(caller, session, to) => world.transfer(caller, *session, to).await,
            Self::End(session) => world.end(&supervisor_caller("s1"), *session).await.map(drop),
            Self::Offline(admin, requeue) => world.offline(admin, *requeue).await.map(drop),
            Self::Online(admin) => {
                world.online(admin, 4).await;
                Ok(())
            }
            Self::Drain => {
                world.drain().await;
                Ok(())
            }
        };
        assert!(matches!(answer, Ok(()) | Err(Refused(_))), "{self:?}: {answer:?}");
    }
}

async fn open_many(world: &World, count: usize) -> Vec<SessionId> {
    let mut ids = BTreeSet::new();
    for n in 0..count {
        ids.insert(world.open(&format!("u{n}"), 0).await.id);
    }
    ids.into_iter().collect()
}

/// As many sessions, each with an agent of its own.
async fn pairs(world: &World, count: usize) -> (Vec<SessionId>, Vec<AdminId>) {
    let sessions = open_many(world, count).await;
    let mut agents = Vec::new();
    for (n, session) in sessions.iter().enumerate() {
        let admin = world.agent(&format!("source{n}"), 1).await;
        world.claim(&admin, *session).await.unwrap();
        agents.push(admin);
    }
    (sessions, agents)
}
