//! Sessions in each state, and the people around them.

use kefu_core::{Caller, ManualIds, Timestamp, UserInfo};
use kefu_events::EventContext;
use kefu_session::{OpenVerdict, Session, Status, decide_open};
use kefu_testkit::build::{admin, node, trace, user};

pub(crate) const T0: Timestamp = Timestamp(1_769_558_400_000);

pub(crate) fn at(now: Timestamp) -> EventContext {
    EventContext { now, source: node(), trace_id: trace() }
}

pub(crate) fn visitor() -> UserInfo {
    user("u1", 500)
}

pub(crate) fn waiting() -> Session {
    match decide_open(None, &visitor(), "web", 0, &at(T0), &ManualIds::default()) {
        OpenVerdict::Insert(session, _) => session,
        verdict => panic!("not opened: {verdict:?}"),
    }
}

/// A session of `u1` in the given state; active and ended ones are `a1`'s.
pub(crate) fn session_in(status: Status) -> Session {
    let active = || waiting().assigned(&admin("a1"), T0).expect("waits");
    match status {
        Status::Waiting => waiting(),
        Status::Active => active(),
        Status::Ended => active().ended(&Caller::User(visitor()).actor(), T0).expect("open"),
    }
}
