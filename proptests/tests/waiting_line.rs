//! The waiting line with ageing against its model: its order, and what everybody in it is told.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::marker::PhantomData;
use std::time::Duration;

use kefu_core::{Balance, UserInfo};
use kefu_proptests::model::line::{Hall, Place, Step, USERS};
use kefu_proptests::model::{
    AgeingIgnored, BalanceIgnored, Bench, Break, OnMemory, OnPostgres, OnSqlite, RefreshForgotten,
    RequeueLosesPlace, Setup, Who, caught, code, holds,
};
use kefu_queue::invariant::check_place;
use kefu_session::{decide_open, decide_refresh};
use kefu_testkit::build;
use proptest_state_machine::StateMachineTest;

/// The agent's cap.
const ROOM: u32 = 10;
const _: () = assert!(USERS <= ROOM as usize, "there is room for everybody");

struct WaitingLine<S>(PhantomData<S>);

impl<S: Setup> StateMachineTest for WaitingLine<S> {
    type SystemUnderTest = Bench<S>;
    type Reference = Hall;

    fn init_test(_: &Hall) -> Bench<S> {
        let bench = Bench::start(1);
        bench.staff(0, ROOM);
        bench
    }

    fn apply(mut bench: Bench<S>, hall: &Hall, step: Step) -> Bench<S> {
        let ageing = if bench.breaks(Break::AgeingIgnored) { 0 } else { hall.ageing };
        act(&mut bench, hall, ageing, &step);
        bench
    }

    fn check_invariants(bench: &Bench<S>, hall: &Hall) {
        let rows = bench.check();
        let line = rows.line.expect("a line");
        let listed: Vec<_> = line.sessions.iter().map(|session| session.id).collect();
        let due: Vec<_> = hall.line().iter().map(|number| bench.sessions[*number]).collect();
        assert_eq!(listed, due, "the line");
        for (number, session) in bench.sessions.iter().enumerate() {
            let place = bench.wait(bench.world.stores.line.place(*session)).expect("readable");
            let ahead = hall.line().iter().position(|other| *other == number);
            let told = place.map(|place| place.position as usize);
            assert_eq!(told, ahead.map(|ahead| ahead + 1), "the place of {number}");
            assert_eq!(check_place(&line, *session, place), []);
        }
    }
}

fn act<S: Setup>(bench: &mut Bench<S>, hall: &Hall, ageing: i64, step: &Step) {
    let world = bench.world.clone();
    let (context, ids) = (world.context(), world.ids.as_ref());
    match *step {
        Step::Arrive(user, balance) => {
            let info = person(bench, user, balance);
            let opened = bench.wait(world.stores.sessions.open(
                &info.user_id,
                &|open, ids| decide_open(open, &info, "web", ageing, &context, ids),
                ids,
            ));
            bench.learn(opened.expect("the store answers").session.id);
        }
        Step::Resume(user, balance) => {
            let info = person(bench, user, balance);
            let mut stays = hall.stays.iter();
            let open = stays.position(|stay| stay.user == user && stay.place != Place::Gone);
            if let Some(number) = open {
                let updated = bench.wait(world.stores.sessions.update(
                    bench.sessions[number],
                    &|session, _| decide_refresh(session, &info, ageing),
                    ids,
                ));
                updated.expect("the store answers");
            }
        }
        Step::Pass(millis) => world.clock.advance(Duration::from_millis(millis.into())),
        Step::Take(number) => {
            let taken = bench.wait(world.claim(&bench.admin(0), bench.sessions[number]));
            assert_eq!(code(taken), Ok(()));
        }
        Step::Leave(number) => {
            let user = Who::User(hall.stays[number].user).caller();
            let ended = bench.wait(world.end(&user, bench.sessions[number]));
            assert_eq!(code(ended), Ok(()));
        }
        Step::Requeue => {
            let admin = bench.admin(0);
            assert_eq!(code(bench.wait(world.offline(&admin, true))), Ok(()));
            bench.wait(world.online(&admin, ROOM));
        }
    }
}

fn person<S: Setup>(bench: &Bench<S>, user: usize, balance: Option<i64>) -> UserInfo {
    UserInfo { balance: balance.map(Balance), ..build::user(bench.user(user).as_str(), 0) }
}

#[test]
fn on_memory() {
    holds::<WaitingLine<OnMemory>>(file!(), 256, 40);
}

#[test]
fn on_sqlite() {
    holds::<WaitingLine<OnSqlite>>(file!(), 6, 12);
}

#[test]
fn on_postgres() {
    holds::<WaitingLine<OnPostgres>>(file!(), 6, 12);
}

#[test]
fn a_line_without_balance_is_noticed() {
    caught::<WaitingLine<BalanceIgnored>>("the line is not in order");
}

#[test]
fn a_line_without_ageing_is_noticed() {
    caught::<WaitingLine<AgeingIgnored>>("the line");
}

#[test]
fn a_requeue_that_loses_its_place_is_noticed() {
    caught::<WaitingLine<RequeueLosesPlace>>("the line");
}

#[test]
fn a_forgotten_refresh_is_noticed() {
    caught::<WaitingLine<RefreshForgotten>>("the line");
}
