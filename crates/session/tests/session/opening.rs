//! Opening, refreshing and ageing (S1, Q1).

use crate::common::{T0, at, session_in, visitor, waiting};
use kefu_core::snowflake::EPOCH_MS;
use kefu_core::{Balance, ManualIds, Seq, Timestamp, UserInfo};
use kefu_events::Event;
use kefu_session::{OpenVerdict, Session, Status, decide_open, priority};
use kefu_testkit::build::user;
use proptest::prelude::*;

fn open(open: Option<&Session>, user: &UserInfo, ageing: i64) -> OpenVerdict {
    decide_open(open, user, "app", ageing, &at(T0), &ManualIds::default())
}

#[test]
fn without_an_open_session_a_new_one_waits_and_is_announced() {
    let OpenVerdict::Insert(session, events) = open(None, &visitor(), 0) else {
        panic!("not inserted")
    };
    assert_eq!((session.status, session.admin_id.clone()), (Status::Waiting, None));
    assert_eq!((session.last_seq, session.last_msg_id, session.version), (Seq(0), None, 1));
    assert_eq!((session.balance, session.priority), (Some(Balance(500)), 500));
    assert_eq!(session.source, "app");
    assert_eq!(session.started_at, session.queued_at);
    let [event] = &events[..] else { panic!("one event: {events:?}") };
    let expected =
        Event::SessionOpened { session_id: session.id, user_id: visitor().user_id, version: 1 };
    assert_eq!(event.event, expected);
}

#[test]
fn an_open_session_is_returned_as_it_is() {
    for status in [Status::Waiting, Status::Active] {
        let session = session_in(status);
        let verdict = open(Some(&session), &visitor(), 0);
        assert!(matches!(verdict, OpenVerdict::Keep(kept) if kept == session), "S1: {status:?}");
    }
}

#[test]
fn a_waiting_session_follows_the_newest_token_and_keeps_its_waiting_time() {
    let before = waiting();
    let richer = UserInfo { name: "Mei".into(), vip: Some(true), ..user("u1", 900) };
    let OpenVerdict::Refresh(after) = open(Some(&before), &richer, 0) else {
        panic!("not refreshed")
    };
    assert_eq!((after.balance, after.priority), (Some(Balance(900)), 900));
    assert_eq!((after.user.name.as_str(), after.user.vip), ("Mei", Some(true)));
    assert_eq!(after.queued_at, before.queued_at);
    assert_eq!(after.version, before.version + 1);
}

#[test]
fn an_active_session_keeps_the_balance_it_waited_with() {
    let active = session_in(Status::Active);
    let verdict = open(Some(&active), &user("u1", 9_999), 0);
    assert!(matches!(verdict, OpenVerdict::Keep(kept) if kept == active), "frozen");
}

#[test]
fn a_missing_balance_counts_as_zero_and_stays_missing() {
    let nobody = UserInfo { balance: None, ..visitor() };
    let OpenVerdict::Insert(session, _) = open(None, &nobody, 0) else { panic!("not inserted") };
    assert_eq!((session.balance, session.priority), (None, 0));
}

#[test]
fn ageing_lets_the_longer_wait_outrank_the_larger_balance() {
    // Ten minor units a minute: eleven minutes outweigh a hundred and nine.
    let minute = |n: i64| Timestamp(EPOCH_MS + n * 60_000);
    assert!(
        priority(Some(Balance(0)), minute(0), 10) > priority(Some(Balance(109)), minute(11), 10)
    );
    assert!(
        priority(Some(Balance(0)), minute(0), 10) < priority(Some(Balance(111)), minute(11), 10)
    );
}

fn moments() -> impl Strategy<Value = Timestamp> {
    (EPOCH_MS..EPOCH_MS + 20 * 365 * 86_400_000).prop_map(Timestamp)
}

proptest! {
    #[test]
    fn priority_stays_exact_in_a_redis_score(
        balance in any::<Option<i64>>(),
        queued_at in any::<i64>().prop_map(|ms| Timestamp(ms / 4)),
        ageing in 0..i64::MAX,
    ) {
        let priority = priority(balance.map(Balance), queued_at, ageing);
        prop_assert!(priority.abs() <= Balance::MAX, "Q1");
    }

    #[test]
    fn more_balance_never_comes_later(
        low in any::<i64>(), high in any::<i64>(), queued_at in moments(), ageing in 0..10_000_i64,
    ) {
        let (low, high) = (low.min(high), low.max(high));
        prop_assert!(
            priority(Some(Balance(low)), queued_at, ageing)
                <= priority(Some(Balance(high)), queued_at, ageing)
        );
    }

    #[test]
    fn waiting_longer_never_comes_later(
        balance in any::<i64>(), early in moments(), late in moments(), ageing in 0..10_000_i64,
    ) {
        let (early, late) = (early.min(late), early.max(late));
        let balance = Some(Balance(balance));
        prop_assert!(priority(balance, early, ageing) >= priority(balance, late, ageing));
    }

    #[test]
    fn without_ageing_time_does_not_count(balance in any::<i64>(), a in moments(), b in moments()) {
        let balance = Some(Balance(balance));
        prop_assert_eq!(priority(balance, a, 0), priority(balance, b, 0));
    }

    #[test]
    fn folding_once_gives_the_order_of_ageing_all_along(
        balances in (-1_000_000..1_000_000_i64, -1_000_000..1_000_000_i64),
        minutes in (0..10_000_i64, 0..10_000_i64),
        ageing in 0..1_000_i64,
        now in 10_000..20_000_i64,
    ) {
        let at = |minute: i64| Timestamp(EPOCH_MS + minute * 60_000);
        let folded = |balance, minute| priority(Some(Balance(balance)), at(minute), ageing);
        let aged = |balance: i64, minute: i64| balance + ageing * (now - minute);
        prop_assert_eq!(
            folded(balances.0, minutes.0).cmp(&folded(balances.1, minutes.1)),
            aged(balances.0, minutes.0).cmp(&aged(balances.1, minutes.1))
        );
    }
}
