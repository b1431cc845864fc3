//! Rating (S3, CC-21).

use crate::common::{T0, at, session_in, visitor};
use kefu_core::{Caller, ManualIds, Timestamp};
use kefu_events::Event;
use kefu_session::{
    Rating, RatingRequest, Refusal, Session, SessionVerdict, Status, decide_rating,
};
use kefu_testkit::build::{agent_info, supervisor_caller, user};

fn rate(session: &Session, caller: &Caller, score: u8, now: Timestamp) -> SessionVerdict {
    let request = RatingRequest { score, comment: format!("{score} of 5") };
    decide_rating(session, caller, &request, &at(now), &ManualIds::default())
}

fn refusal(verdict: &SessionVerdict) -> Option<Refusal> {
    match verdict {
        SessionVerdict::Refuse(refusal) => Some(*refusal),
        SessionVerdict::Write(..) | SessionVerdict::Keep => None,
    }
}

#[test]
fn only_its_user_rates() {
    for status in [Status::Waiting, Status::Active, Status::Ended] {
        let session = session_in(status);
        let by = |caller| refusal(&rate(&session, &caller, 5, T0));
        assert_eq!(by(Caller::User(visitor())), None);
        assert_eq!(by(Caller::User(user("u2", 0))), Some(Refusal::NotFound), "A3");
        assert_eq!(by(Caller::Agent(agent_info("a1"))), Some(Refusal::Forbidden), "A3");
        assert_eq!(by(supervisor_caller("s1")), Some(Refusal::Forbidden), "A3");
    }
}

#[test]
fn one_to_five_and_nothing_else() {
    let session = session_in(Status::Ended);
    for score in 0..=u8::MAX {
        let refused = refusal(&rate(&session, &Caller::User(visitor()), score, T0));
        assert_eq!(refused.is_some(), !(1..=5).contains(&score), "{score}");
    }
}

#[test]
fn a_later_rating_replaces_the_earlier_and_is_told_each_time() {
    let later = Timestamp(T0.0 + 5);
    let caller = Caller::User(visitor());
    let SessionVerdict::Write(first, _) = rate(&session_in(Status::Ended), &caller, 2, T0) else {
        panic!("not rated")
    };
    let SessionVerdict::Write(second, events) = rate(&first, &caller, 4, later) else {
        panic!("not rated again")
    };
    let expected = Rating { score: 4, comment: "4 of 5".into(), time: later };
    assert_eq!(second.rating, Some(expected));
    assert_eq!(second.version, first.version + 1);
    let told = events.iter().map(|envelope| envelope.event.clone()).collect::<Vec<_>>();
    let expected = Event::SessionRated {
        session_id: second.id,
        user_id: visitor().user_id,
        rating: 4,
        version: second.version,
    };
    assert_eq!(told, [expected]);
}

#[test]
fn a_refused_rating_says_who_is_asked_before_what() {
    let session = session_in(Status::Ended);
    let foreign = rate(&session, &Caller::User(user("u2", 0)), 9, T0);
    assert_eq!(refusal(&foreign), Some(Refusal::NotFound), "a stranger learns nothing");
}
