//! The rule of an acknowledgement (M3): by a receiver, monotonic and idempotent in any order.

use std::collections::BTreeMap;

use kefu_core::{Caller, Clock, ManualClock, ManualIds, MsgId, Person, Seq, SessionId};
use kefu_events::EventContext;
use kefu_messaging::{
    Message, MessageStatus, MessageType, Parties, Receipt, ReceiptOutcome, ReceiptRequest,
    ReceiptSnapshot, ReceiptVerdict, Sender, decide_receipts,
};
use kefu_session::{OpenVerdict, Refusal, Session, decide_open};
use kefu_testkit::build::{
    admin, agent_caller, from_agent, from_user, key, node, receipt, receipt_up_to,
    supervisor_caller, trace, unanswered, user, user_caller,
};
use proptest::prelude::*;

fn session(id: &str, owner: Option<&str>) -> Session {
    let now = ManualClock::default().now();
    let context = EventContext { now, source: node(), trace_id: trace() };
    let OpenVerdict::Insert(session, _) =
        decide_open(None, &user(id, 0), "web", 0, &context, &ManualIds::default())
    else {
        panic!("not opened")
    };
    match owner {
        Some(owner) => session.assigned(&admin(owner), now).expect("waits"),
        None => session,
    }
}

fn id(raw: i64) -> MsgId {
    MsgId::new(raw).expect("positive")
}

fn message(raw: i64, session: SessionId, sender: Sender, status: MessageStatus) -> Message {
    Message {
        msg_id: id(raw),
        session_id: session,
        seq: Seq(raw),
        sender,
        client_msg_id: key(raw.to_string()),
        msg_type: MessageType::Text,
        content: "hi".into(),
        status,
        create_time: ManualClock::default().now(),
    }
}

/// `u1` wrote 1, 2, 3 to `a1`, who wrote 4 and 5.
fn snapshot() -> ReceiptSnapshot {
    let session = session("u1", Some("a1"));
    let (user, agent) = (from_user(&session.user.user_id), from_agent(&admin("a1")));
    let messages = (1..=5)
        .map(|raw| {
            let sender = if raw <= 3 { user.clone() } else { agent.clone() };
            message(raw, session.id, sender, MessageStatus::Pending)
        })
        .map(|message| (message.msg_id, message))
        .collect();
    ReceiptSnapshot { messages, sessions: BTreeMap::from([(session.id, session)]) }
}

fn a1() -> Caller {
    agent_caller(&admin("a1"))
}

fn u1() -> Caller {
    user_caller(&user("u1", 0).user_id)
}

fn decide(snapshot: &ReceiptSnapshot, request: ReceiptRequest) -> ReceiptVerdict {
    decide_receipts(snapshot, &[request])
}

fn statuses(verdict: &ReceiptVerdict) -> Vec<(i64, MessageStatus)> {
    let change = |c: &kefu_messaging::StatusChange| (c.message.msg_id.get(), c.message.status);
    verdict.changes.iter().map(change).collect()
}

fn refusal(snapshot: &ReceiptSnapshot, request: ReceiptRequest) -> Option<Refusal> {
    let verdict = decide(snapshot, request);
    assert_eq!(verdict.outcomes.len(), 1);
    match verdict.outcomes[0] {
        ReceiptOutcome::Taken => None,
        ReceiptOutcome::Refused(refusal) => {
            assert!(verdict.changes.is_empty(), "a refused report changes nothing");
            Some(refusal)
        }
    }
}

#[test]
fn only_a_receiver_of_the_moment_reports() {
    let known = snapshot();
    let read = |caller: &Caller, raw| refusal(&known, receipt(caller, id(raw), Receipt::Read));
    assert_eq!(read(&a1(), 1), None);
    assert_eq!(read(&u1(), 4), None);
    assert_eq!(read(&u1(), 1), Some(Refusal::Forbidden), "one's own message");
    assert_eq!(read(&a1(), 4), Some(Refusal::Forbidden), "one's own side");
    let a2 = agent_caller(&admin("a2"));
    assert_eq!(read(&a2, 1), Some(Refusal::NotFound), "A3");
    assert_eq!(read(&user_caller(&user("u2", 0).user_id), 4), Some(Refusal::NotFound), "A3");
    assert_eq!(read(&a1(), 99), Some(Refusal::NotFound));
    for raw in [1, 4, 99] {
        let supervisor = read(&supervisor_caller("s1"), raw);
        assert_eq!(supervisor, Some(Refusal::Forbidden), "A3: whether it exists or not");
    }
}

#[test]
fn a_receiver_cannot_report_a_failure() {
    let failed = refusal(&snapshot(), receipt(&a1(), id(1), Receipt::Failed));
    assert!(matches!(failed, Some(Refusal::BadRequest(_))));
}

#[test]
fn failed_follows_only_pending_and_is_not_final() {
    for (status, expected) in [
        (MessageStatus::Pending, vec![(1, MessageStatus::Failed)]),
        (MessageStatus::Failed, vec![]),
        (MessageStatus::Delivered, vec![]),
        (MessageStatus::Read, vec![]),
    ] {
        let mut known = snapshot();
        known.messages.get_mut(&id(1)).expect("there").status = status;
        assert_eq!(statuses(&decide(&known, unanswered(id(1)))), expected, "M3: {status}");
    }
    let mut known = snapshot();
    known.messages.get_mut(&id(1)).expect("there").status = MessageStatus::Failed;
    let late = decide(&known, receipt(&a1(), id(1), Receipt::Delivered));
    assert_eq!(statuses(&late), [(1, MessageStatus::Delivered)], "the receiver turned up");
}

#[test]
fn cumulative_covers_what_the_other_side_wrote_before_in_that_session() {
    let verdict = decide(&snapshot(), receipt_up_to(&a1(), id(2), Receipt::Read));
    let expected = [(1, MessageStatus::Read), (2, MessageStatus::Read)];
    assert_eq!(statuses(&verdict), expected, "one change a message, by id");
    let verdict = decide(&snapshot(), receipt_up_to(&u1(), id(5), Receipt::Delivered));
    let expected = [(4, MessageStatus::Delivered), (5, MessageStatus::Delivered)];
    assert_eq!(statuses(&verdict), expected, "one's own are not covered");
}

#[test]
fn cumulative_never_reaches_into_another_session() {
    let mut known = snapshot();
    let first = known.messages[&id(1)].session_id;
    let other = Session { id: SessionId::new(777).expect("positive"), ..session("u1", Some("a1")) };
    let theirs =
        message(1_001, other.id, known.messages[&id(1)].sender.clone(), MessageStatus::Pending);
    let theirs = Message { seq: Seq(1), ..theirs };
    known.messages.insert(theirs.msg_id, theirs);
    known.sessions.insert(other.id, other);
    let verdict = decide(&known, receipt_up_to(&a1(), id(3), Receipt::Read));
    assert!(verdict.changes.iter().all(|change| change.message.session_id == first));
    assert_eq!(verdict.changes.len(), 3);
}

#[test]
fn the_same_report_again_changes_nothing() {
    let twice = [receipt(&a1(), id(1), Receipt::Read), receipt(&a1(), id(1), Receipt::Read)];
    let verdict = decide_receipts(&snapshot(), &twice);
    assert_eq!(verdict.outcomes, [ReceiptOutcome::Taken, ReceiptOutcome::Taken]);
    assert_eq!(statuses(&verdict), [(1, MessageStatus::Read)], "told once");
}

#[test]
fn a_change_comes_with_the_session_whose_holders_are_told() {
    let mut known = snapshot();
    let told = |known: &ReceiptSnapshot, by: &Caller, raw| {
        let change = decide(known, receipt(by, id(raw), Receipt::Read)).changes.remove(0);
        Parties::from(&change.session).on(change.message.sender.side())
    };
    assert_eq!(told(&known, &a1(), 1), Some(Person::User(user("u1", 0).user_id)));
    assert_eq!(told(&known, &u1(), 4), Some(Person::Agent(admin("a1"))));
    let session = known.sessions.values_mut().next().expect("one");
    *session = session.assigned(&admin("a2"), session.started_at).expect("open");
    assert_eq!(told(&known, &u1(), 4), Some(Person::Agent(admin("a2"))), "M2: after a transfer");
    let session = known.sessions.values_mut().next().expect("one");
    *session = session.requeued().expect("active");
    assert_eq!(told(&known, &u1(), 4), None, "nobody holds that side");
}

fn reports() -> impl Strategy<Value = Vec<(i64, u8, bool)>> {
    proptest::collection::vec((1..=3_i64, 0..3_u8, any::<bool>()), 0..30)
}

fn request((raw, kind, cumulative): (i64, u8, bool)) -> ReceiptRequest {
    match kind {
        0 => unanswered(id(raw)),
        1 => ReceiptRequest { cumulative, ..receipt(&a1(), id(raw), Receipt::Delivered) },
        _ => ReceiptRequest { cumulative, ..receipt(&a1(), id(raw), Receipt::Read) },
    }
}

fn apply(known: &mut ReceiptSnapshot, batch: &[ReceiptRequest]) -> Result<(), TestCaseError> {
    for change in decide_receipts(known, batch).changes {
        let stored = known.messages.get_mut(&change.message.msg_id).expect("known");
        prop_assert!(stored.status.may_become(change.message.status), "M3: never back");
        *stored = change.message;
    }
    Ok(())
}

proptest! {
    #[test]
    fn in_any_order_and_any_batching_the_status_only_rises(
        reports in reports(), size in 1..8_usize,
    ) {
        let requests: Vec<_> = reports.iter().copied().map(request).collect();
        let mut known = snapshot();
        for batch in requests.chunks(size) {
            apply(&mut known, batch)?;
        }
        // The highest report about each message decides, whatever came when.
        for raw in 1..=3 {
            let covers = |(about, _, cumulative): &&(i64, u8, bool)| {
                *about == raw || *cumulative && *about > raw
            };
            let reached = |kind| reports.iter().filter(covers).any(|r| r.1 == kind);
            let failed = reports.iter().any(|r| r.0 == raw && r.1 == 0);
            let expected = match (reached(2), reached(1), failed) {
                (true, _, _) => MessageStatus::Read,
                (_, true, _) => MessageStatus::Delivered,
                (_, _, true) => MessageStatus::Failed,
                _ => MessageStatus::Pending,
            };
            prop_assert_eq!(known.messages[&id(raw)].status, expected);
        }
        // And everything again changes nothing.
        let settled = known.messages.clone();
        apply(&mut known, &requests)?;
        prop_assert_eq!(known.messages, settled, "idempotent");
    }
}
