//! A verdict that breaks a constraint of the tables is refused, and nothing of it is written.

use std::sync::Arc;

use kefu_assignment::{Change, Scope, Verdict};
use kefu_core::{AssignmentId, IdSource, ManualClock, MsgId, Seq, SessionId, StoreFault};
use kefu_events::{Envelope, Event};
use kefu_memory::MemoryWorld;
use kefu_messaging::{AppendVerdict, Message, MessageStatus, ReceiptVerdict, StatusChange, Tip};
use kefu_session::{OpenVerdict, Session, SessionVerdict, Status};
use kefu_testkit::{World, build};

fn world() -> World {
    World::new(MemoryWorld::new(Arc::new(ManualClock::default())).stores())
}

fn assert_refused<T: std::fmt::Debug>(answer: &Result<T, StoreFault>) {
    assert!(matches!(answer, Err(StoreFault::Internal { .. })), "{answer:?}");
}

fn event_of(world: &World, session: &Session) -> Envelope {
    let event = Event::SessionOpened {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        version: session.version,
    };
    Envelope::new(event, &world.context(), world.ids.as_ref())
}

#[tokio::test]
async fn status_and_owner_must_agree() {
    let world = world();
    let session = world.open("u1", 0).await;
    let outbox = world.outbox().await;
    let wrong = [
        Session { admin_id: Some(build::admin("a1")), ..session.clone() },
        Session { status: Status::Active, ..session.clone() },
    ];
    for wrong in wrong {
        let change = Change {
            agents: vec![build::agent_row("a1", 1)],
            events: vec![event_of(&world, &wrong)],
            records: vec![build::record(&*world.ids, session.id, None, world.context().now)],
            sessions: vec![wrong],
        };
        assert_refused(&world.apply(&change).await);
        assert_eq!(world.session(session.id).await, session);
        assert_eq!(world.stores.agents.find(&build::admin("a1")).await, Ok(None));
        assert_eq!(world.stores.assignments.list_records(session.id).await, Ok(Vec::new()));
        assert_eq!(world.outbox().await, outbox);
    }
}

#[tokio::test]
async fn a_user_has_one_open_session() {
    let world = world();
    let first = world.open("u1", 0).await;
    let ended = world.end_by_user(&first).await;
    let second = world.open("u1", 0).await;

    let third = Session { id: SessionId::next_after(&*world.ids, 0), ..second.clone() };
    let (user, ids) = (&second.user.user_id, world.ids.as_ref());
    let insert =
        |_: Option<&Session>, _: &dyn IdSource| OpenVerdict::Insert(third.clone(), Vec::new());
    assert_refused(&world.stores.sessions.open(user, &insert, ids).await);
    assert_eq!(world.stores.sessions.find(third.id).await, Ok(None));

    let reopened = Session { status: Status::Waiting, admin_id: None, ..ended.clone() };
    let reopen = Change { sessions: vec![reopened.clone()], ..Change::default() };
    assert_refused(&world.apply(&reopen).await);
    assert_eq!(world.session(first.id).await, ended);

    let closed = Session { status: Status::Ended, ..second.clone() };
    let swap = Change { sessions: vec![reopened, closed], ..Change::default() };
    assert!(world.apply(&swap).await.is_ok(), "what holds after the change counts");
    let open = world.stores.sessions.find_open(&second.user.user_id).await;
    assert_eq!(open.map(|open| open.map(|s| s.id)), Ok(Some(first.id)));
}

#[tokio::test]
async fn the_session_store_leaves_status_owner_and_tip_alone() {
    let world = world();
    let session = world.open("u1", 0).await;
    let wrong = [
        Session { status: Status::Ended, ..session.clone() },
        Session { last_seq: Seq(1), ..session.clone() },
        Session { last_msg_id: MsgId::new(1).ok(), ..session.clone() },
    ];
    for wrong in wrong {
        let write =
            |_: &Session, _: &dyn IdSource| SessionVerdict::Write(wrong.clone(), Vec::new());
        let ids = world.ids.as_ref();
        assert_refused(&world.stores.sessions.update(session.id, &write, ids).await);
        assert_eq!(world.session(session.id).await, session);
    }
}

#[tokio::test]
async fn only_rows_of_the_scope_are_written() {
    let world = world();
    let session = world.open("u1", 0).await;
    let unlocked = [
        Change { sessions: vec![session.clone()], ..Change::default() },
        Change { agents: vec![build::agent_row("a1", 1)], ..Change::default() },
    ];
    for change in unlocked {
        let scope = Scope::default();
        assert_refused(&world.transact(&scope, &|_, _| Verdict::Apply(change.clone())).await);
    }
    assert_eq!(world.stores.agents.find(&build::admin("a1")).await, Ok(None));
}

#[tokio::test]
async fn ids_of_events_and_records_are_used_once() {
    let world = world();
    let session = world.open("u1", 0).await;
    let stored = world.outbox().await;
    let again = Change { events: stored.clone(), ..Change::default() };
    assert_refused(&world.apply(&again).await);

    let record = build::record(&*world.ids, session.id, None, world.context().now);
    let twice = Change { records: vec![record.clone(), record], ..Change::default() };
    assert_refused(&world.apply(&twice).await);
    assert_eq!(world.stores.assignments.list_records(session.id).await, Ok(Vec::new()));

    let ids: Vec<_> = stored.iter().map(|envelope| envelope.id).collect();
    world.stores.outbox.confirm(&ids, world.context().now).await.expect("memory");
    assert_refused(&world.apply(&again).await);
}

/// Appends `messages` as they are, with the tip of the last.
async fn append_as_is(world: &World, messages: &[Message]) -> Result<AppendVerdict, StoreFault> {
    let tips = messages.last().map(|last| Tip {
        session_id: last.session_id,
        last_seq: last.seq,
        last_msg_id: last.msg_id,
        version: 99,
    });
    let verdict = AppendVerdict {
        messages: messages.iter().cloned().map(Arc::new).collect(),
        tips: tips.into_iter().collect(),
        ..AppendVerdict::default()
    };
    let ids = world.ids.as_ref();
    world.stores.messages.append(&[], &|_, _, _| verdict.clone(), ids).await
}

#[tokio::test]
async fn message_ids_positions_and_keys_are_used_once() {
    let world = world();
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let first = world.say(session.id, &sender, "k1", "hello").await.as_ref().clone();
    let before = (world.session(session.id).await, world.history(session.id).await);

    let fresh = |seq: i64, key: &str| Message {
        msg_id: MsgId::next_after(&*world.ids, 0),
        seq: Seq(seq),
        client_msg_id: build::key(key),
        ..first.clone()
    };
    let unknown = SessionId::next_after(&*world.ids, 0);
    let id_of_stored = Message { msg_id: first.msg_id, ..fresh(2, "k2") };
    let two = fresh(2, "k2");
    let batches = [
        vec![fresh(2, "k2"), fresh(2, "k3")],
        vec![fresh(2, "k2"), fresh(3, "k2")],
        vec![two.clone(), Message { msg_id: two.msg_id, ..fresh(3, "k3") }],
        vec![fresh(2, "k2"), fresh(1, "k3")],
        vec![fresh(2, "k2"), fresh(3, "k1")],
        vec![id_of_stored],
        vec![fresh(2, "k2"), Message { session_id: unknown, ..fresh(3, "k3") }],
    ];
    for batch in batches {
        assert_refused(&append_as_is(&world, &batch).await);
        assert_eq!((world.session(session.id).await, world.history(session.id).await), before);
    }
    assert!(append_as_is(&world, &[two]).await.is_ok());
}

#[tokio::test]
async fn a_status_never_goes_back() {
    let world = world();
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let message = world.say(session.id, &sender, "k1", "hello").await;
    let record = |status| {
        let message = Message { status, ..message.as_ref().clone() };
        let changes = vec![StatusChange { message, session: session.clone(), trace_id: None }];
        let verdict = ReceiptVerdict { outcomes: Vec::new(), changes };
        let stores = world.stores.clone();
        async move { stores.messages.record(&[], &|_, _| verdict.clone()).await }
    };
    assert!(record(MessageStatus::Read).await.is_ok());
    assert_refused(&record(MessageStatus::Delivered).await);
    assert_refused(&record(MessageStatus::Failed).await);
    let stored = world.stores.messages.find(message.msg_id).await.expect("memory");
    assert_eq!(stored.map(|message| message.status), Some(MessageStatus::Read));
}

#[tokio::test]
async fn the_floor_of_new_ids_is_the_largest_of_all_tables() {
    let world = world();
    assert_eq!(world.stores.messages.highest_id().await, Ok(0));
    let session = world.open("u1", 0).await;
    let record = build::record(&*world.ids, session.id, None, world.context().now);
    let change = Change { records: vec![record.clone()], ..Change::default() };
    world.apply(&change).await.expect("written");
    assert_eq!(world.stores.messages.highest_id().await.map(AssignmentId::new), Ok(Ok(record.id)));
    assert!(world.ids.next_after(0) > record.id.get());
}

#[tokio::test]
async fn a_rule_that_panics_leaves_the_world_whole() {
    let world = world();
    let session = world.open("u1", 0).await;
    let broken = world.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { broken.transact(&Scope::default(), &|_, _| panic!("rule")).await });
    assert!(tasks.join_next().await.is_some_and(|ended| ended.is_err()));
    assert_eq!(world.session(session.id).await, session);
    assert_eq!(world.open("u1", 0).await.id, session.id);
}
