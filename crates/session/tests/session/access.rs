//! The whole matrix of A3: every role, every wish, every relation to the session.

use crate::common::{session_in, visitor};
use Access::{End, Rate, Read, Talk, Transfer};
use kefu_core::Caller;
use kefu_session::{Access, Refusal, Session, Status, access, role_allows};
use kefu_testkit::build::{agent_info, supervisor_caller, user};

const WISHES: [Access; 5] = [Read, Talk, End, Transfer, Rate];
const STATES: [Status; 3] = [Status::Waiting, Status::Active, Status::Ended];

const FORBIDDEN: Result<(), Refusal> = Err(Refusal::Forbidden);
const NOT_FOUND: Result<(), Refusal> = Err(Refusal::NotFound);

/// Asserts one row: what the caller gets for Read, Talk, End, Transfer, Rate.
fn row(session: &Session, caller: &Caller, owns_open: bool, expected: [Result<(), Refusal>; 5]) {
    for (wanted, expected) in WISHES.into_iter().zip(expected) {
        let got = access(session, caller, wanted, owns_open);
        assert_eq!(got, expected, "{wanted:?} by {caller:?} while {:?}", session.status);
    }
}

#[test]
fn its_user_may_all_but_transfer_in_every_state() {
    for status in STATES {
        let own = [Ok(()), Ok(()), Ok(()), FORBIDDEN, Ok(())];
        row(&session_in(status), &Caller::User(visitor()), false, own);
    }
}

#[test]
fn another_user_finds_nothing() {
    for status in STATES {
        let foreign = [NOT_FOUND, NOT_FOUND, NOT_FOUND, FORBIDDEN, NOT_FOUND];
        row(&session_in(status), &Caller::User(user("u2", 0)), false, foreign);
        // The flag speaks of agents; it must not open anything to a user.
        row(&session_in(status), &Caller::User(user("u2", 0)), true, foreign);
    }
}

#[test]
fn its_agent_may_all_but_rate() {
    // After the end the recorded agent still finds the session: S2 wants `session_closed`.
    for status in [Status::Active, Status::Ended] {
        let own = [Ok(()), Ok(()), Ok(()), Ok(()), FORBIDDEN];
        row(&session_in(status), &Caller::Agent(agent_info("a1")), false, own);
    }
}

#[test]
fn an_agent_finds_nothing_of_a_session_that_waits_or_is_a_colleagues() {
    let nothing = [NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, FORBIDDEN];
    row(&session_in(Status::Waiting), &Caller::Agent(agent_info("a1")), false, nothing);
    for status in STATES {
        row(&session_in(status), &Caller::Agent(agent_info("a2")), false, nothing);
    }
}

#[test]
fn the_owner_of_the_users_open_session_may_read_the_ended_ones_and_only_read() {
    let caller = Caller::Agent(agent_info("a2"));
    let read = [Ok(()), NOT_FOUND, NOT_FOUND, NOT_FOUND, FORBIDDEN];
    row(&session_in(Status::Ended), &caller, true, read);
    // It opens past sessions; an open one of a colleague stays closed.
    let nothing = [NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, FORBIDDEN];
    row(&session_in(Status::Active), &caller, true, nothing);
    row(&session_in(Status::Waiting), &caller, true, nothing);
}

#[test]
fn a_supervisor_reads_ends_and_transfers_any_and_never_talks_or_rates() {
    for status in STATES {
        let any = [Ok(()), FORBIDDEN, Ok(()), Ok(()), FORBIDDEN];
        row(&session_in(status), &supervisor_caller("s1"), false, any);
    }
}

#[test]
fn the_role_alone_forbids_without_a_session() {
    let user = Caller::User(visitor());
    let agent = Caller::Agent(agent_info("a1"));
    let forbidden = [
        (&user, vec![Transfer]),
        (&agent, vec![Rate]),
        (&supervisor_caller("s1"), vec![Talk, Rate]),
    ]
    .map(|(caller, never)| {
        WISHES.map(|wanted| (role_allows(caller, wanted).is_err(), never.contains(&wanted)))
    });
    for (is, should) in forbidden.into_iter().flatten() {
        assert_eq!(is, should);
    }
}
