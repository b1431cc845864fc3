//! What a caller may rely on when an answer is lost, a call is held up, or its task goes away.

use std::sync::Arc;

use kefu_core::StoreFault;
use kefu_messaging::{AppendOutcome, MessageStatus, MessageStore, Receipt};
use kefu_session::{Refusal, SessionStore, Status};
use tokio::task::JoinSet;

use crate::build::{self, agent_caller, from_user, receipt, text, user_caller};
use crate::check::Ledger;
use crate::{Flaky, Gate, Harness, Slow, World, stored};

/// T2: a message whose ack was lost is found by repeating its key, with the same answer.
pub async fn a_lost_append_is_found_by_its_key<H: Harness>() {
    let (_harness, mut world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
    world.stores.messages = Arc::clone(&flaky) as Arc<dyn MessageStore>;
    let batch = [text(session.id, &from_user(&session.user.user_id), "k", "hello")];
    flaky.lose_answer(1);
    assert!(is_indeterminate(&world.append(&batch).await));
    let stored_one = world.history(session.id).await;
    assert_eq!(stored_one.len(), 1, "the answer was lost, not the message");
    let again = stored(world.append(&batch).await.unwrap().outcomes.remove(0));
    assert!(again.duplicate);
    assert_eq!(*again.message, stored_one[0]);
    assert_eq!(world.history(session.id).await, stored_one);
}

/// After `Unavailable` nothing was written, and the same call goes through once the store is back.
pub async fn an_unavailable_store_wrote_nothing<H: Harness>() {
    let (_harness, mut world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
    world.stores.messages = Arc::clone(&flaky) as Arc<dyn MessageStore>;
    let batch = [text(session.id, &from_user(&session.user.user_id), "k", "hello")];
    flaky.cut();
    let answer = world.append(&batch).await;
    assert!(matches!(answer, Err(StoreFault::Unavailable { .. })));
    assert!(matches!(
        world.stores.messages.highest_id().await,
        Err(StoreFault::Unavailable { .. })
    ));
    flaky.mend();
    assert_eq!(world.history(session.id).await, []);
    assert!(!stored(world.append(&batch).await.unwrap().outcomes.remove(0)).duplicate);
}

/// Repeating an opening, an end and a receipt whose answers were lost has no second effect.
pub async fn repeating_after_a_lost_answer_is_harmless<H: Harness>() {
    let (_harness, mut world) = World::start::<H>().await;
    let sessions = Arc::new(Flaky::new(Arc::clone(&world.stores.sessions)));
    let messages = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
    let assignments = Arc::new(Flaky::new(Arc::clone(&world.stores.assignments)));
    let mut stores = world.stores.clone();
    stores.sessions = Arc::clone(&sessions) as Arc<dyn SessionStore>;
    stores.messages = Arc::clone(&messages) as _;
    stores.assignments = Arc::clone(&assignments) as _;
    world = World::with(stores, Arc::clone(&world.clock), 0, world.bus.clone());

    sessions.lose_answer(1);
    assert!(is_indeterminate(&world.try_open(&build::user("u1", 0)).await));
    let session = world.open("u1", 0).await;
    assert_eq!(world.outbox().await.len(), 1);

    let admin = world.agent("a1", 2).await;
    assignments.lose_answer(1);
    let claimed = world.claim(&admin, session.id).await;
    assert!(claimed.is_err());
    assert_eq!(world.agent_row(&admin).await.active_sessions, 1);
    assert_eq!(world.claim(&admin, session.id).await, Err(Refusal::Conflict.into()));

    let sent = world.say(session.id, &from_user(&session.user.user_id), "k", "x").await;
    let report = [receipt(&agent_caller(&admin), sent.msg_id, Receipt::Read)];
    messages.lose_answer(1);
    assert!(is_indeterminate(&world.report(&report).await));
    assert_eq!(world.report(&report).await.unwrap().changes, []);
    assert_eq!(world.history(session.id).await[0].status, MessageStatus::Read);

    let user = user_caller(&session.user.user_id);
    assignments.lose_answer(1);
    assert!(world.end(&user, session.id).await.is_err());
    assert_eq!(world.end(&user, session.id).await.unwrap().status, Status::Ended);
    assert_eq!(world.agent_row(&admin).await.active_sessions, 0);
    Ledger::collect(&world.stores, [session.id], [admin]).await.unwrap().assert_sound();
}

/// S2: a send that was held up until after the end is refused; it is never stored behind it.
pub async fn a_held_send_does_not_outlive_the_end<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let gate = Gate::new();
    let mut slow = world.clone();
    slow.stores.messages = Arc::new(Slow::new(Arc::clone(&world.stores.messages), gate.clone()));
    gate.close();
    let mut held = JoinSet::new();
    let sender = from_user(&session.user.user_id);
    held.spawn(async move { slow.send(session.id, &sender, "k", "late").await });
    gate.held(1).await;
    world.end_by_user(&session).await;
    gate.open();
    let answers = held.join_all().await;
    assert_eq!(answers, [AppendOutcome::Refused(Refusal::SessionClosed)]);
    assert_eq!(world.history(session.id).await, []);
}

/// Tasks that are dropped in the middle of a call leave whole transactions and a store that works.
pub async fn dropped_calls_leave_nothing_half_done<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 10).await;
    let mut sessions = Vec::new();
    for n in 0..5 {
        sessions.push(world.open(&format!("u{n}"), 0).await);
    }
    for round in 0..20 {
        let mut tasks = JoinSet::new();
        for session in &sessions {
            let (world, session) = (world.clone(), session.clone());
            let admin = admin.clone();
            tasks.spawn(async move {
                let sender = from_user(&session.user.user_id);
                world.send(session.id, &sender, &round.to_string(), "x").await;
                drop(world.claim(&admin, session.id).await);
            });
        }
        tokio::task::yield_now().await;
        tasks.shutdown().await;
    }
    for session in &sessions {
        world.say(session.id, &from_user(&session.user.user_id), "last", "x").await;
    }
    let ids = sessions.iter().map(|session| session.id);
    Ledger::collect(&world.stores, ids, [admin]).await.unwrap().assert_sound();
}

fn is_indeterminate<T>(answer: &Result<T, StoreFault>) -> bool {
    matches!(answer, Err(StoreFault::Indeterminate { .. }))
}
