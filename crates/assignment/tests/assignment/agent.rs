//! Availability, liveness and requeue (Z1, Z7, P4).

use std::time::Duration;

use crate::common::{code, load, serve, world};
use kefu_assignment::{Origin, Outcome};
use kefu_core::limit::AGENT_GRACE;
use kefu_core::{Actor, Clock, ErrorCode, Timestamp};
use kefu_events::{Event, RequeueReason};
use kefu_presence::{Agent, Availability};
use kefu_session::{Session, Status};
use kefu_testkit::World;
use kefu_testkit::build::{
    admin, agent_caller, agent_info, supervisor_caller, trace, user, user_caller,
};

#[tokio::test]
async fn the_cap_is_one_to_ten() {
    let world = world();
    let caller = agent_caller(&admin("a"));
    for cap in [0, 11, u32::MAX] {
        let refused = world.assignments.go_online(&caller, cap, Origin(None), trace()).await;
        assert_eq!(code(refused), ErrorCode::BadRequest, "Z1: {cap}");
    }
    for cap in [1, 10] {
        let agent = world.assignments.go_online(&caller, cap, Origin(None), trace()).await;
        assert_eq!(agent.expect("in range").max_sessions, cap);
    }
    for caller in [user_caller(&user("u1", 0).user_id), supervisor_caller("s1")] {
        let online = world.assignments.go_online(&caller, 1, Origin(None), trace()).await;
        assert_eq!(code(online), ErrorCode::Forbidden, "A3");
        let offline = world.assignments.go_offline(&caller, false, Origin(None), trace()).await;
        assert_eq!(code(offline), ErrorCode::Forbidden, "A3");
    }
}

/// Every write makes the row's copies older (A1), also one that changes nothing else.
fn unversioned(agent: Agent) -> Agent {
    Agent { version: 0, ..agent }
}

#[tokio::test]
async fn connecting_and_reloading_change_neither_choice_nor_sessions() {
    let world = world();
    let a = world.agent("a", 2).await;
    let session = serve(&world, "u1", &a).await;
    let first = world.agent_row(&a).await;

    world.connect(&agent_info("a")).await;
    let second = unversioned(world.agent_row(&a).await);
    assert_eq!(second, unversioned(first.clone()), "a second socket is no transition");

    world.vanish(&a).await;
    let gone = world.agent_row(&a).await;
    assert_eq!((gone.live, gone.gone_since), (false, Some(world.clock.now())));
    assert_eq!(gone.availability, Availability::Online, "Z7: two facts");
    world.clock.advance(Duration::from_secs(5));
    world.vanish(&a).await;
    let later = unversioned(world.agent_row(&a).await);
    assert_eq!(later, unversioned(gone), "gone since the first moment");

    let back = world.connect(&agent_info("a")).await;
    assert_eq!((back.live, back.live_gen, back.gone_since), (true, first.live_gen + 1, None));
    assert_eq!((back.availability, back.active_sessions), (Availability::Online, 1));
    assert!(world.session(session.id).await.is_owned_by(&a), "Z7: a reload keeps all");
}

#[tokio::test]
async fn transitions_are_announced_and_heartbeats_are_not() {
    let world = world();
    let a = world.agent("a", 2).await;
    world.connect(&agent_info("a")).await;
    world.online(&a, 2).await;
    world.vanish(&a).await;
    world.vanish(&a).await;
    let told: Vec<_> = world
        .outbox_of("agent:a")
        .await
        .into_iter()
        .map(|envelope| match envelope.event {
            Event::AgentChanged { online, live, .. } => (online, live),
            event => panic!("not about the agent: {event:?}"),
        })
        .collect();
    assert_eq!(told, [(false, true), (true, true), (true, false)]);
}

#[tokio::test]
async fn offline_keeps_open_sessions_unless_they_are_given_back() {
    let world = world();
    let a = world.agent("a", 2).await;
    let session = serve(&world, "u1", &a).await;
    let agent = world.offline(&a, false).await.expect("offline");
    assert_eq!((agent.availability, agent.active_sessions), (Availability::Offline, 1));
    assert!(world.session(session.id).await.is_owned_by(&a));

    let agent = world.offline(&a, true).await.expect("offline");
    assert_eq!(agent.active_sessions, 0);
    let requeued = world.session(session.id).await;
    assert_eq!(requeued.status, Status::Waiting);
    let records = world.stores.assignments.list_records(session.id).await.expect("readable");
    let last = records.last().expect("a record");
    assert_eq!(last.outcome, Outcome::Requeued(RequeueReason::AgentOffline));
    assert_eq!(last.actor, Actor::Agent(a));
}

/// `a` serves two users, and has been gone for `gone`.
async fn gone_for(gone: Duration) -> (World, [Session; 2]) {
    let world = world();
    let a = world.agent("a", 2).await;
    let rich = world.open("rich", 900).await;
    let poor = world.open("poor", 100).await;
    world.clock.advance(Duration::from_secs(30));
    for session in [&rich, &poor] {
        world.claim(&a, session.id).await.expect("claimed");
    }
    world.vanish(&a).await;
    world.clock.advance(gone);
    (world, [rich, poor])
}

async fn sweep(world: &World) -> usize {
    let before = world.clock.now().before(AGENT_GRACE);
    world.assignments.requeue_gone(before, trace()).await.expect("swept")
}

#[tokio::test]
async fn an_agent_gone_longer_than_the_grace_gives_all_sessions_back() {
    let (world, [rich, poor]) = gone_for(AGENT_GRACE + Duration::from_millis(1)).await;
    // Somebody who came meanwhile, richer than one and poorer than the other.
    let between = world.open("between", 500).await;
    assert_eq!(sweep(&world).await, 1);

    for before in [&rich, &poor] {
        let after = world.session(before.id).await;
        assert_eq!((after.status, after.admin_id.clone()), (Status::Waiting, None));
        assert_eq!(
            (after.queued_at, after.balance, after.priority),
            (before.queued_at, before.balance, before.priority),
            "Z7: original waiting time and balance"
        );
        let records = world.stores.assignments.list_records(before.id).await.expect("readable");
        let last = records.last().expect("a record");
        assert_eq!(last.outcome, Outcome::Requeued(RequeueReason::AgentGone));
        assert_eq!(last.actor, Actor::System, "Z7");
    }
    let agent = world.agent_row(&admin("a")).await;
    assert_eq!((agent.availability, agent.active_sessions), (Availability::Offline, 0), "Z7");
    let line = world.stores.line.front(10).await.expect("readable").sessions;
    let order: Vec<_> = line.iter().map(|session| session.id).collect();
    assert_eq!(order, [rich.id, between.id, poor.id], "Q1: back at their original places");
    assert_eq!(sweep(&world).await, 0, "once");
}

#[tokio::test]
async fn within_the_grace_nothing_happens() {
    let (world, [rich, _]) = gone_for(AGENT_GRACE).await;
    assert_eq!(sweep(&world).await, 0, "longer than, not as long as");
    assert!(world.session(rich.id).await.is_owned_by(&admin("a")));
}

#[tokio::test]
async fn an_agent_who_came_back_is_left_alone() {
    let (world, [rich, _]) = gone_for(AGENT_GRACE * 2).await;
    world.connect(&agent_info("a")).await;
    assert_eq!(sweep(&world).await, 0);
    assert!(world.session(rich.id).await.is_owned_by(&admin("a")), "Z7");
    assert_eq!(load(&world, &admin("a")).await, 2);

    // Gone again: the grace counts from the new moment.
    world.vanish(&admin("a")).await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(sweep(&world).await, 0);
}

#[tokio::test]
async fn an_agent_who_comes_back_between_look_and_lock_is_left_alone() {
    let (world, [rich, _]) = gone_for(AGENT_GRACE * 2).await;
    // The look saw the agent gone; `requeue_gone` re-checks under lock, so this one must not bite.
    let gone = world.stores.agents.list_gone(Timestamp(i64::MAX)).await.expect("readable");
    assert_eq!(gone.len(), 1);
    let gate = kefu_testkit::Gate::new();
    gate.close();
    let store = std::sync::Arc::clone(&world.stores.assignments);
    let slow = std::sync::Arc::new(kefu_testkit::Slow::new(store, gate.clone()));
    let services = crate::common::assignments_over(&world, slow);
    let before = world.clock.now().before(AGENT_GRACE);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { services.requeue_gone(before, trace()).await });
    gate.held(1).await;
    world.connect(&agent_info("a")).await;
    gate.open();
    tasks.join_next().await.expect("one task").expect("no panic").expect("swept");
    assert!(world.session(rich.id).await.is_owned_by(&admin("a")), "Z7");
    assert_eq!(world.agent_row(&admin("a")).await.availability, Availability::Online);
}

#[tokio::test]
async fn a_process_start_gives_everybody_the_whole_grace_again() {
    let (world, [rich, _]) = gone_for(AGENT_GRACE * 5).await;
    let b = world.agent("b", 1).await;
    world.assignments.restart_grace(trace()).await.expect("restarted");
    for id in [admin("a"), b] {
        let agent = world.agent_row(&id).await;
        assert_eq!((agent.live, agent.gone_since), (false, Some(world.clock.now())), "P4");
        assert_eq!(agent.availability, Availability::Online, "the choice stays");
    }
    assert_eq!(sweep(&world).await, 0, "who was gone before had no chance to come back");
    world.clock.advance(AGENT_GRACE + Duration::from_millis(1));
    assert_eq!(sweep(&world).await, 2);
    assert_eq!(world.session(rich.id).await.status, Status::Waiting);
}
