//! Real concurrency: everybody does everything at once, and the books still add up (2.2, 2.6, CC-03).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::world;
use async_trait::async_trait;
use kefu_assignment::{
    AssignmentDecision, AssignmentError, AssignmentStore, DecisionRecord, Drain, Scope, Verdict,
};
use kefu_core::{AdminId, IdSource, SessionId, StoreFault};
use kefu_session::Refusal;
use kefu_testkit::build::{
    admin, agent_caller, agent_info, supervisor_caller, trace, user, user_caller,
};
use kefu_testkit::check::Ledger;
use kefu_testkit::{Gate, Slow, World, race, seeded};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const TASKS: usize = 100;
const ACTS: usize = 500;
const AGENTS: usize = 8;
const USERS: usize = 40;
const CAP: u32 = 3;

/// What the rules may answer in a race. Anything else is a broken port or a broken rule.
fn tolerated<T>(result: Result<T, AssignmentError>) {
    match result {
        Ok(_)
        | Err(AssignmentError::Refused(
            Refusal::NotFound
            | Refusal::SessionClosed
            | Refusal::Conflict
            | Refusal::AgentUnavailable
            | Refusal::BadRequest(_),
        )) => {}
        Err(error) => panic!("not an answer of the rules: {error}"),
    }
}

async fn act(world: &World, seen: &Mutex<BTreeSet<SessionId>>, chance: &mut StdRng) {
    let agent = admin(&format!("a{}", chance.random_range(0..AGENTS)));
    let other = admin(&format!("a{}", chance.random_range(0..AGENTS)));
    let id = format!("u{}", chance.random_range(0..USERS));
    let session = world.stores.sessions.find_open(&user(&id, 0).user_id).await.expect("readable");
    let caller = agent_caller(&agent);
    match (chance.random_range(0..10), session) {
        (0 | 1, _) | (_, None) => {
            let opened = world.open(&id, chance.random_range(0..1_000)).await;
            seen.lock().expect("no panic").insert(opened.id);
        }
        (2, Some(session)) => tolerated(world.claim(&agent, session.id).await),
        (3 | 4, Some(session)) => {
            let owner = session.admin_id.unwrap_or(agent);
            tolerated(world.transfer(&agent_caller(&owner), session.id, &other).await);
        }
        (5, Some(session)) => {
            let by = if chance.random() { user_caller(&session.user.user_id) } else { caller };
            tolerated(world.end(&by, session.id).await);
        }
        (6, _) => tolerated(world.offline(&agent, chance.random()).await),
        (7, Some(session)) => {
            let by = supervisor_caller("s1");
            tolerated(world.transfer(&by, session.id, &other).await);
        }
        (8, _) => {
            if chance.random() {
                world.vanish(&agent).await;
            } else {
                world.connect(&agent_info(agent.as_str())).await;
            }
        }
        _ => {
            world.connect(&agent_info(agent.as_str())).await;
            world.online(&agent, CAP).await;
            world.drain().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_tasks_doing_everything_leave_sound_books() {
    let mut seeds = seeded("a_hundred_tasks");
    let seeds: Vec<u64> = (0..TASKS).map(|_| seeds.random()).collect();
    let world = world();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    race(TASKS, |n| {
        let (world, seen) = (world.clone(), Arc::clone(&seen));
        let mut chance = StdRng::seed_from_u64(seeds[n]);
        async move {
            for _ in 0..ACTS {
                act(&world, &seen, &mut chance).await;
                tokio::task::yield_now().await;
            }
        }
    })
    .await;

    let sessions: Vec<_> = seen.lock().expect("no panic").iter().copied().collect();
    let agents: Vec<_> = (0..AGENTS).map(|n| admin(&format!("a{n}"))).collect();
    Ledger::collect(&world.stores, sessions.clone(), agents.clone())
        .await
        .expect("readable")
        .assert_sound();

    // Once it is quiet nobody waits while an eligible agent has room (Z3).
    world.drain().await;
    let eligible = world.stores.agents.list_eligible(1).await.expect("readable");
    let line = world.stores.line.front(1).await.expect("readable");
    assert!(eligible.is_empty() || line.sessions.is_empty(), "Z3: {eligible:?} {line:?}");
    Ledger::collect(&world.stores, sessions, agents).await.expect("readable").assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_arrivals_at_once_make_ten_each_and_the_next_one_waits() {
    let world = world();
    for n in 0..10 {
        world.agent(&format!("a{n}"), 10).await;
    }
    race(100, |n| {
        let world = world.clone();
        async move {
            world.open(&format!("u{n}"), 0).await;
            world.drain().await
        }
    })
    .await;
    world.drain().await;
    for n in 0..10 {
        let agent = world.agent_row(&admin(&format!("a{n}"))).await;
        assert_eq!(agent.active_sessions, 10, "2.6 and CC-03");
    }
    let late = world.open("u100", 0).await;
    assert_eq!(world.drain().await, 0);
    let first = world.stores.sessions.find_open(&user("u0", 0).user_id).await.expect("readable");
    let first = first.expect("open");
    world.end_by_user(&first).await;
    assert_eq!(world.drain().await, 1);
    let served = world.session(late.id).await;
    assert_eq!(served.admin_id, first.admin_id, "whose place became free");
}

/// Counts how many transactions are inside at once.
struct Turnstile {
    inner: Arc<dyn AssignmentStore>,
    inside: AtomicUsize,
    most: AtomicUsize,
    entered: AtomicUsize,
}

impl Turnstile {
    fn around(inner: Arc<dyn AssignmentStore>) -> Arc<Self> {
        let [inside, most, entered] = [0; 3].map(AtomicUsize::new);
        Arc::new(Self { inner, inside, most, entered })
    }
}

#[async_trait]
impl AssignmentStore for Turnstile {
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let verdict = self.inner.transact(scope, decide, ids).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
        verdict
    }

    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault> {
        self.inner.list_records(session).await
    }
}

fn drain_over(world: &World, store: Arc<dyn AssignmentStore>) -> Arc<Drain> {
    Arc::new(Drain::new(
        Arc::clone(&world.stores.line),
        Arc::clone(&world.stores.agents),
        store,
        world.source(),
        trace(),
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_pass_at_a_time_however_many_ask() {
    let world = world();
    for n in 0..10 {
        world.agent(&format!("a{n}"), 10).await;
    }
    let turnstile = Turnstile::around(Arc::clone(&world.stores.assignments));
    let drain = drain_over(&world, Arc::clone(&turnstile) as Arc<dyn AssignmentStore>);
    let assigned = race(100, |n| {
        let (world, drain) = (world.clone(), Arc::clone(&drain));
        async move {
            world.open(&format!("u{n}"), 0).await;
            drain.run().await.expect("drained")
        }
    })
    .await;
    assert_eq!(turnstile.most.load(Ordering::SeqCst), 1, "Z2: one pass at a time");
    // No wake-up is lost: whoever found the gate taken was served by its holder.
    assert_eq!(assigned.iter().sum::<usize>(), 100, "Z2: the flag");
    assert_eq!(world.stores.line.front(1).await.expect("readable").total, 0);
}

#[tokio::test]
async fn who_finds_the_gate_taken_leaves_a_flag_and_the_holder_goes_round_again() {
    let world = world();
    world.agent("a", 10).await;
    let gate = Gate::new();
    gate.close();
    let slow = Slow::new(Arc::clone(&world.stores.assignments), gate.clone());
    let drain = drain_over(&world, Arc::new(slow));

    world.open("u1", 0).await;
    let mut holder = tokio::task::JoinSet::new();
    let first = Arc::clone(&drain);
    holder.spawn(async move { first.run().await });
    gate.held(1).await;
    // The plan of the running pass knows only u1.
    world.open("u2", 0).await;
    assert_eq!(drain.run().await.expect("left a flag"), 0);
    gate.open();
    let assigned = holder.join_next().await.expect("one task").expect("no panic");
    assert_eq!(assigned.expect("drained"), 2);
}

#[tokio::test]
async fn an_agent_who_goes_offline_between_choice_and_write_leaves_the_session_waiting() {
    let world = world();
    let a = world.agent("a", 1).await;
    let session = world.open("u1", 0).await;
    let gate = Gate::new();
    gate.close();
    let slow = Slow::new(Arc::clone(&world.stores.assignments), gate.clone());
    let drain = drain_over(&world, Arc::new(slow));
    let mut pass = tokio::task::JoinSet::new();
    pass.spawn(async move { drain.run().await });
    gate.held(1).await;
    world.offline(&a, false).await.expect("offline");
    gate.open();
    let assigned = pass.join_next().await.expect("one task").expect("no panic");
    assert_eq!(assigned.expect("drained"), 0);
    let session = world.session(session.id).await;
    assert_eq!(session.admin_id, None::<AdminId>, "2.3");
    assert!(session.assigned_at.is_none() && session.is_open(), "2.3");
}

#[tokio::test]
async fn a_chosen_agent_who_leaves_is_replaced_in_the_same_pass() {
    let world = world();
    let a = world.agent("a", 1).await;
    world.agent("b", 1).await;
    let session = world.open("u1", 0).await;
    let gate = Gate::new();
    gate.close();
    let slow = Slow::new(Arc::clone(&world.stores.assignments), gate.clone());
    let drain = drain_over(&world, Arc::new(slow));
    let mut pass = tokio::task::JoinSet::new();
    pass.spawn(async move { drain.run().await });
    gate.held(1).await;
    world.vanish(&a).await;
    gate.open();
    let assigned = pass.join_next().await.expect("one task").expect("no panic");
    assert_eq!(assigned.expect("drained"), 1, "Z2: the next candidate is tried");
    assert!(world.session(session.id).await.is_owned_by(&admin("b")));
}
