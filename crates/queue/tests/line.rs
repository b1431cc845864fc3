//! The order of the line (Q1) and the offline notice (Q2).

use std::time::Duration;

use kefu_core::limit::OFFLINE_NOTICE_EVERY;
use kefu_core::{Clock, ManualClock, ManualIds, Timestamp};
use kefu_events::EventContext;
use kefu_queue::{Outlook, ahead, decide_notice};
use kefu_session::{OpenVerdict, Session, SessionVerdict, decide_open};
use kefu_testkit::build::{admin, node, trace, user};

fn open(ids: &ManualIds, id: &str, balance: i64) -> Session {
    let now = ManualClock::default().now();
    let context = EventContext { now, source: node(), trace_id: trace() };
    match decide_open(None, &user(id, balance), "web", 0, &context, ids) {
        OpenVerdict::Insert(session, _) => session,
        verdict => panic!("not opened: {verdict:?}"),
    }
}

fn waiting() -> Session {
    open(&ManualIds::default(), "u1", 0)
}

fn noticed(session: &Session, now: Timestamp) -> Option<Session> {
    match decide_notice(session, now) {
        SessionVerdict::Write(session, events) => {
            assert!(events.is_empty(), "a notice is no event of its own");
            Some(session)
        }
        SessionVerdict::Keep => None,
        SessionVerdict::Refuse(refusal) => panic!("refused: {refusal}"),
    }
}

#[test]
fn balances_are_served_highest_first_and_equals_in_the_order_they_came() {
    let ids = ManualIds::default();
    let balances = [100, 500, 200, 500, 300];
    let mut line: Vec<_> =
        balances.iter().zip(1..).map(|(b, n): (_, u32)| open(&ids, &format!("u{n}"), *b)).collect();
    line.reverse();
    line.sort_by(ahead);
    let order: Vec<_> = line.iter().map(|s| s.user.user_id.as_str()).collect();
    assert_eq!(order, ["u2", "u4", "u5", "u3", "u1"], "Q1, CC-15");
}

#[test]
fn a_notice_comes_once_in_ten_minutes() {
    let start = Timestamp(1_000_000);
    let told = noticed(&waiting(), start).expect("due at once");
    assert_eq!(told.noticed_at, Some(start));
    assert_eq!(told.version, waiting().version + 1);
    let almost = start.after(OFFLINE_NOTICE_EVERY - Duration::from_millis(1));
    assert_eq!(noticed(&told, start), None);
    assert_eq!(noticed(&told, almost), None, "Q2");
    assert!(noticed(&told, start.after(OFFLINE_NOTICE_EVERY)).is_some(), "Q2");
}

#[test]
fn a_requeue_makes_it_due_again() {
    let start = Timestamp(1_000_000);
    let told = noticed(&waiting(), start).expect("due");
    let requeued = told.assigned(&admin("a1"), start).and_then(|s| s.requeued()).expect("requeued");
    assert!(noticed(&requeued, start.after(Duration::from_secs(1))).is_some(), "Q2");
}

#[test]
fn only_who_waits_is_told() {
    let active = waiting().assigned(&admin("a1"), Timestamp(0)).expect("waits");
    assert_eq!(noticed(&active, Timestamp(1)), None);
    let ended = active.ended(&kefu_core::Actor::System, Timestamp(0)).expect("open");
    assert_eq!(noticed(&ended, Timestamp(1)), None);
}

#[test]
fn a_clock_that_steps_back_silences_nobody() {
    let told = noticed(&waiting(), Timestamp(10_000_000_000)).expect("due");
    let stepped = Timestamp(1_000_000);
    let again = noticed(&told, stepped).expect("the old time lies in the future and says nothing");
    assert_eq!(noticed(&again, stepped.after(Duration::from_secs(1))), None, "once, then quiet");
}

#[test]
fn the_outlook_depends_on_who_is_online() {
    assert_eq!(Outlook::when(true), Outlook::Queued);
    assert_eq!(Outlook::when(false), Outlook::LeaveMessage, "CC-14");
}
