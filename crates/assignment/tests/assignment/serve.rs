//! Claim, transfer and end over a store (Z5, Z6, S4, A3).

use std::sync::Arc;

use crate::common::{assignments_over, code, load, serve, world};
use kefu_assignment::{AssignmentStore, Origin, Outcome};
use kefu_core::{Actor, Caller, ErrorCode};
use kefu_events::{Event, How};
use kefu_session::Status;
use kefu_testkit::build::{
    admin, agent_caller, agent_info, supervisor_caller, trace, user, user_caller,
};
use kefu_testkit::{Gate, Slow, World, race};

#[tokio::test]
async fn of_two_claims_at_once_one_wins() {
    let world = world();
    let (a, b) = (world.agent("a", 1).await, world.agent("b", 1).await);
    let session = world.open("u1", 0).await;
    let results = race(2, |n| {
        let (world, admin) = (world.clone(), if n == 0 { a.clone() } else { b.clone() });
        async move { world.claim(&admin, session.id).await }
    })
    .await;
    assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1, "Z6");
    let refused: Vec<_> = results.into_iter().filter_map(Result::err).map(|e| e.code()).collect();
    assert_eq!(refused, [ErrorCode::Conflict], "Z6");
    assert_eq!(load(&world, &a).await + load(&world, &b).await, 1);
}

#[tokio::test]
async fn a_claim_is_refused_by_state_then_by_claimant() {
    let world = world();
    let a = world.agent("a", 1).await;
    let served = serve(&world, "u1", &a).await;
    let over = world.open("u2", 0).await;
    world.end_by_user(&over).await;
    let waiting = world.open("u3", 0).await;

    let b = world.agent("b", 1).await;
    assert_eq!(code(world.claim(&b, served.id).await), ErrorCode::Conflict, "Z6");
    assert_eq!(code(world.claim(&b, over.id).await), ErrorCode::SessionClosed, "Z6");
    assert_eq!(code(world.claim(&a, waiting.id).await), ErrorCode::AgentUnavailable, "full");
    assert_eq!(code(world.claim(&a, served.id).await), ErrorCode::Conflict, "state first");
    world.offline(&b, false).await.expect("offline");
    assert_eq!(code(world.claim(&b, waiting.id).await), ErrorCode::AgentUnavailable, "offline");
    let nobody = admin("never-seen");
    assert_eq!(code(world.claim(&nobody, waiting.id).await), ErrorCode::AgentUnavailable);
    let unknown = kefu_core::SessionId::new(1).expect("positive");
    assert_eq!(code(world.claim(&b, unknown).await), ErrorCode::NotFound);

    for caller in [user_caller(&user("u3", 0).user_id), supervisor_caller("s1")] {
        let claim = world.assignments.claim(&caller, waiting.id, Origin(None), trace());
        assert_eq!(code(claim.await), ErrorCode::Forbidden, "A3");
    }
    assert_eq!(world.session(waiting.id).await.status, Status::Waiting);
}

/// `a` serves `u1`; `b` has room; `full`, `off` and `gone` have none.
async fn transfer_world() -> (World, kefu_session::Session) {
    let world = world();
    let a = world.agent("a", 2).await;
    world.agent("b", 2).await;
    let full = world.agent("full", 1).await;
    serve(&world, "other", &full).await;
    let off = world.agent("off", 1).await;
    world.offline(&off, false).await.expect("offline");
    let gone = world.agent("gone", 1).await;
    world.vanish(&gone).await;
    let session = serve(&world, "u1", &a).await;
    (world, session)
}

#[tokio::test]
async fn a_transfer_moves_one_load_and_tells_who_did_it() {
    let (world, session) = transfer_world().await;
    let (a, b) = (admin("a"), admin("b"));
    world.transfer(&agent_caller(&a), session.id, &b).await.expect("transferred");
    assert_eq!((load(&world, &a).await, load(&world, &b).await), (0, 1), "Z5");
    assert!(world.session(session.id).await.is_owned_by(&b));
    let events = world.outbox_of(&format!("session:{}", session.id)).await;
    let last = &events.last().expect("an event").event;
    let expected = Event::SessionAssigned {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        admin_id: b,
        from: Some(a.clone()),
        how: How::Transfer,
        actor: Actor::Agent(a),
        version: session.version + 1,
    };
    assert_eq!(*last, expected);
}

#[tokio::test]
async fn an_unavailable_target_leaves_the_session_where_it_is() {
    let (world, session) = transfer_world().await;
    for target in ["full", "off", "gone", "never-seen"] {
        let refused = world.transfer(&agent_caller(&admin("a")), session.id, &admin(target)).await;
        assert_eq!(code(refused), ErrorCode::AgentUnavailable, "Z5: {target}");
    }
    assert_eq!(world.session(session.id).await, session, "nothing was written");
    assert_eq!(load(&world, &admin("a")).await, 1);
}

#[tokio::test]
async fn state_is_checked_before_the_target_and_the_caller_before_the_state() {
    let (world, session) = transfer_world().await;
    let supervisor = supervisor_caller("s1");
    let ended = world.open("u2", 0).await;
    world.end_by_user(&ended).await;
    let waiting = world.open("u3", 0).await;
    let unknown = kefu_core::SessionId::new(1).expect("positive");
    let cases = [
        // Every target here is bad as well: the first reason in Z5's order wins.
        (&supervisor, unknown, "never-seen", ErrorCode::NotFound),
        (&supervisor, ended.id, "never-seen", ErrorCode::SessionClosed),
        (&supervisor, waiting.id, "full", ErrorCode::Conflict),
        (&supervisor, session.id, "a", ErrorCode::BadRequest),
        (&agent_caller(&admin("a")), session.id, "a", ErrorCode::BadRequest),
        (&agent_caller(&admin("b")), session.id, "never-seen", ErrorCode::NotFound),
        (&agent_caller(&admin("b")), waiting.id, "b", ErrorCode::NotFound),
        (&user_caller(&session.user.user_id), session.id, "b", ErrorCode::Forbidden),
        (&user_caller(&session.user.user_id), unknown, "b", ErrorCode::Forbidden),
    ];
    for (caller, session, target, expected) in cases {
        let refused = world.transfer(caller, session, &admin(target)).await;
        assert_eq!(code(refused), expected, "{caller:?} of {session} to {target}");
    }
}

#[tokio::test]
async fn the_recorded_agent_of_an_ended_session_learns_that_it_is_closed() {
    let (world, session) = transfer_world().await;
    world.end_by_user(&session).await;
    let refused = world.transfer(&agent_caller(&admin("a")), session.id, &admin("b")).await;
    assert_eq!(code(refused), ErrorCode::SessionClosed, "S2");
}

#[tokio::test]
async fn the_same_transfer_again_is_a_success_without_effect() {
    for caller in [agent_caller(&admin("a")), supervisor_caller("s1")] {
        let (world, session) = transfer_world().await;
        let b = admin("b");
        for _ in 0..3 {
            world.transfer(&caller, session.id, &b).await.expect("S4");
        }
        assert_eq!((load(&world, &admin("a")).await, load(&world, &b).await), (0, 1), "S4");
        let records = world.stores.assignments.list_records(session.id).await.expect("readable");
        let transfers = records.iter().filter(|r| r.outcome == Outcome::Transferred).count();
        assert_eq!(transfers, 1, "S4");
    }
}

#[tokio::test]
async fn a_repeat_counts_only_for_who_made_it_and_only_while_it_stands() {
    let (world, session) = transfer_world().await;
    let (a, b) = (agent_caller(&admin("a")), agent_caller(&admin("b")));
    world.transfer(&a, session.id, &admin("b")).await.expect("transferred");

    let by_another = world.transfer(&supervisor_caller("s1"), session.id, &admin("b")).await;
    assert_eq!(code(by_another), ErrorCode::BadRequest, "to the present owner");
    assert_eq!(code(world.transfer(&a, session.id, &admin("a")).await), ErrorCode::NotFound, "S4");
    assert_eq!(code(world.end(&a, session.id).await), ErrorCode::NotFound, "S4, A3");

    world.transfer(&b, session.id, &admin("a")).await.expect("back");
    assert_eq!(load(&world, &admin("a")).await, 1);
    let again = world.transfer(&a, session.id, &admin("b")).await;
    again.expect("not a repeat: it moves again");
    assert_eq!(load(&world, &admin("b")).await, 1);
}

#[tokio::test]
async fn ending_twice_gives_the_same_answer_and_one_relief() {
    let (world, session) = transfer_world().await;
    let callers = [
        agent_caller(&admin("a")),
        user_caller(&session.user.user_id),
        supervisor_caller("s1"),
        agent_caller(&admin("a")),
    ];
    let mut answers = Vec::new();
    for caller in &callers {
        answers.push(world.end(caller, session.id).await.expect("S4"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "S4: the same answer");
    assert_eq!(answers[0].ended_by, Some(Actor::Agent(admin("a"))), "the first one ended it");
    assert_eq!(load(&world, &admin("a")).await, 0, "S4: counted once");
    let records = world.stores.assignments.list_records(session.id).await.expect("readable");
    assert_eq!(records.iter().filter(|r| r.outcome == Outcome::Ended).count(), 1);
}

#[tokio::test]
async fn who_may_not_end_finds_nothing() {
    let (world, session) = transfer_world().await;
    for caller in [agent_caller(&admin("b")), user_caller(&user("u9", 0).user_id)] {
        assert_eq!(code(world.end(&caller, session.id).await), ErrorCode::NotFound, "A3");
    }
    let waiting = world.open("u3", 0).await;
    let stranger = world.end(&agent_caller(&admin("a")), waiting.id).await;
    assert_eq!(code(stranger), ErrorCode::NotFound, "nobody's agent");
    world.end_by_user(&waiting).await;
    assert_eq!(world.session(waiting.id).await.status, Status::Ended, "S2: its user may");
}

/// Starts `act` over a slow store, lets `meanwhile` commit before it reaches its rows, then lets it go.
async fn overtaken<T: Send + 'static, F>(
    world: &World,
    act: impl FnOnce(kefu_assignment::Assignments) -> F,
    meanwhile: impl Future<Output = ()>,
) -> T
where
    F: Future<Output = T> + Send + 'static,
{
    let gate = Gate::new();
    gate.close();
    let slow = Slow::new(Arc::clone(&world.stores.assignments), gate.clone());
    let services = assignments_over(world, Arc::new(slow) as Arc<dyn AssignmentStore>);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(act(services));
    gate.held(1).await;
    meanwhile.await;
    gate.open();
    tasks.join_next().await.expect("one task").expect("no panic")
}

#[tokio::test]
async fn an_end_overtaken_by_a_transfer_starts_again_and_relieves_the_new_owner() {
    let (world, session) = transfer_world().await;
    let user: Caller = user_caller(&session.user.user_id);
    let ended = overtaken(
        &world,
        |services| async move { services.end(&user, session.id, Origin(None), trace()).await },
        async {
            let moved = world.transfer(&agent_caller(&admin("a")), session.id, &admin("b")).await;
            moved.expect("transferred");
        },
    )
    .await
    .expect("ended");
    assert_eq!(ended.admin_id, Some(admin("b")));
    assert_eq!((load(&world, &admin("a")).await, load(&world, &admin("b")).await), (0, 0));
}

#[tokio::test]
async fn a_transfer_overtaken_by_another_is_refused_to_the_former_owner() {
    let (world, session) = transfer_world().await;
    world.agent("c", 1).await;
    let a = agent_caller(&admin("a"));
    let late = a.clone();
    let refused = overtaken(
        &world,
        |services| async move {
            let target = admin("c");
            let transfer =
                services.transfer(&late, session.id, &target, None, Origin(None), trace());
            transfer.await
        },
        async { world.transfer(&a, session.id, &admin("b")).await.expect("transferred") },
    )
    .await;
    assert_eq!(code(refused), ErrorCode::NotFound, "A3: it is not theirs any more");
    assert_eq!((load(&world, &admin("b")).await, load(&world, &admin("c")).await), (1, 0));
}

#[tokio::test]
async fn a_requeue_overtaken_by_a_claim_takes_the_new_session_along() {
    let (world, session) = transfer_world().await;
    let a = admin("a");
    let caller = Caller::Agent(agent_info("a"));
    let waiting = world.open("u2", 0).await;
    let agent = overtaken(
        &world,
        |services| async move { services.go_offline(&caller, true, Origin(None), trace()).await },
        async {
            world.claim(&a, waiting.id).await.expect("claimed");
        },
    )
    .await
    .expect("offline");
    assert_eq!(agent.active_sessions, 0);
    for id in [session.id, waiting.id] {
        assert_eq!(world.session(id).await.status, Status::Waiting);
    }
}
