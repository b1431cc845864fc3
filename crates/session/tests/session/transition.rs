//! Every transition from every state (S2, Z7, T1).

use crate::common::{T0, at, session_in, visitor};
use kefu_core::{Caller, ManualIds, MsgId, Seq, Timestamp};
use kefu_session::{Refusal, Session, Status, decide_rating};
use kefu_testkit::build::admin;

const LATER: Timestamp = Timestamp(T0.0 + 60_000);

fn by() -> kefu_core::Actor {
    Caller::User(visitor()).actor()
}

#[test]
fn assigning_works_from_every_open_state() {
    for (from, allowed) in [(Status::Waiting, true), (Status::Active, true), (Status::Ended, false)]
    {
        let session = session_in(from);
        let result = session.assigned(&admin("b1"), LATER);
        if !allowed {
            assert_eq!(result, Err(Refusal::SessionClosed), "S2: {from:?}");
            continue;
        }
        let assigned = result.expect("open");
        assert!(assigned.is_owned_by(&admin("b1")), "{from:?}");
        assert_eq!(assigned.assigned_at, Some(LATER));
        assert_eq!(assigned.version, session.version + 1);
    }
}

#[test]
fn requeueing_works_from_active_only_and_keeps_place_and_balance() {
    assert_eq!(session_in(Status::Waiting).requeued(), Err(Refusal::Conflict));
    assert_eq!(session_in(Status::Ended).requeued(), Err(Refusal::SessionClosed), "S2");

    let active = Session { noticed_at: Some(T0), ..session_in(Status::Active) };
    let requeued = active.requeued().expect("active");
    assert_eq!(
        requeued,
        Session {
            status: Status::Waiting,
            admin_id: None,
            assigned_at: None,
            // Z7 keeps the waiting time and the balance, Q2 forgets the notice.
            noticed_at: None,
            version: active.version + 1,
            ..active.clone()
        }
    );
    assert_eq!(requeued.queued_at, active.queued_at, "Z7");
}

#[test]
fn ending_works_once_and_keeps_the_owner_on_record() {
    for from in [Status::Waiting, Status::Active] {
        let session = session_in(from);
        let ended = session.ended(&by(), LATER).expect("open");
        assert_eq!(ended.status, Status::Ended);
        assert_eq!((ended.ended_at, ended.ended_by.clone()), (Some(LATER), Some(by())));
        assert_eq!(ended.admin_id, session.admin_id, "the recorded agent stays");
        assert_eq!(ended.version, session.version + 1);
        assert!(!ended.is_open() && !ended.is_owned_by(&admin("a1")));
        assert_eq!(ended.ended(&by(), LATER), Err(Refusal::SessionClosed), "S2");
    }
}

#[test]
fn appending_moves_the_tip_and_nothing_else() {
    let id = MsgId::new(77).expect("positive");
    for from in [Status::Waiting, Status::Active] {
        let before = session_in(from);
        let after = before.appended(id);
        let expected = Session {
            last_seq: Seq(1),
            last_msg_id: Some(id),
            version: before.version + 1,
            ..before
        };
        assert_eq!(after, expected, "T1");
    }
}

#[test]
fn rating_touches_neither_state_nor_order() {
    let request = kefu_session::RatingRequest { score: 5, comment: String::new() };
    for status in [Status::Waiting, Status::Active, Status::Ended] {
        let before = session_in(status);
        let caller = Caller::User(visitor());
        let verdict = decide_rating(&before, &caller, &request, &at(LATER), &ManualIds::default());
        let kefu_session::SessionVerdict::Write(after, _) = verdict else {
            panic!("not rated: {verdict:?}")
        };
        let unrated = Session { rating: None, version: before.version, ..after };
        assert_eq!(unrated, before, "S3");
    }
}

#[test]
fn stored_codes_are_those_of_the_table() {
    for (status, code) in [(Status::Waiting, 0), (Status::Active, 1), (Status::Ended, 2)] {
        assert_eq!(status.code(), code);
        assert_eq!(Status::from_code(code), Some(status));
    }
    assert_eq!(Status::from_code(3), None);
}
