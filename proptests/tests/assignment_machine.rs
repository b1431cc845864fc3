//! Assignment against its model: the drain, claims, transfers, ends and requeues, while agents come,
//! vanish and change their caps.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::marker::PhantomData;
use std::time::Duration;

use kefu_assignment::Origin;
use kefu_assignment::invariant::check_quiet;
use kefu_core::Clock;
use kefu_presence::{Agent, Availability};
use kefu_proptests::model::desk::{AGENTS, Due, Floor, GRACE, Step};
use kefu_proptests::model::{
    Bench, CapOffByOne, LivenessIgnored, LoadKept, OnMemory, OnPostgres, OnSqlite, Setup, Stage,
    TiesById, Who, caught, code, holds,
};
use kefu_session::Status;
use kefu_testkit::build;
use kefu_testkit::check::Ledger;
use proptest_state_machine::StateMachineTest;

struct Assignment<S>(PhantomData<S>);

impl<S: Setup> StateMachineTest for Assignment<S> {
    type SystemUnderTest = Bench<S>;
    type Reference = Floor;

    fn init_test(_: &Floor) -> Bench<S> {
        Bench::start(AGENTS)
    }

    fn apply(mut bench: Bench<S>, floor: &Floor, step: Step) -> Bench<S> {
        let answer = act(&mut bench, &step);
        assert_eq!(answer, floor.due, "the answer to {step:?}");
        bench
    }

    fn check_invariants(bench: &Bench<S>, floor: &Floor) {
        let rows = bench.check();
        compare_agents(bench, floor, &rows);
        compare_sessions(bench, floor, &rows);
        if floor.quiet {
            let agents: Vec<_> = rows.agents.iter().map(|(agent, _)| agent.clone()).collect();
            assert_eq!(check_quiet(&rows.line.expect("a line"), &agents), []);
        }
    }
}

fn compare_agents<S: Setup>(bench: &Bench<S>, floor: &Floor, rows: &Ledger) {
    for (number, worker) in floor.workers.iter().enumerate() {
        let id = bench.admin(number);
        let mut agents = rows.agents.iter().map(|(agent, _)| agent);
        let unseen = Agent::new(build::agent_info(id.as_str()), worker.cap);
        let agent = agents.find(|agent| agent.info.admin_id == id).unwrap_or(&unseen);
        let online = agent.availability == Availability::Online;
        assert_eq!(
            (online, agent.live, agent.max_sessions, agent.active_sessions),
            (worker.online, worker.live, worker.cap, floor.load(number)),
            "agent {number}: online, live, cap, load"
        );
    }
}

fn compare_sessions<S: Setup>(bench: &Bench<S>, floor: &Floor, rows: &Ledger) {
    assert_eq!(rows.sessions.len(), floor.chats.len(), "sessions");
    for (number, (chat, id)) in floor.chats.iter().zip(&bench.sessions).enumerate() {
        let session = rows.sessions.iter().find(|session| session.id == *id);
        let session = session.expect("a stored session");
        let (status, owner) = match chat.standing.stage {
            Stage::Waiting => (Status::Waiting, None),
            Stage::With(agent) => (Status::Active, Some(agent)),
            Stage::Over(agent) => (Status::Ended, agent),
        };
        let owner = owner.map(|agent| bench.admin(agent));
        assert_eq!((session.status, &session.admin_id), (status, &owner), "session {number}");
    }
}

fn act<S: Setup>(bench: &mut Bench<S>, step: &Step) -> Due {
    let world = bench.world.clone();
    let (here, trace) = (Origin(None), build::trace());
    match *step {
        Step::Arrive(user, balance) => {
            // A waiting user who comes again would refresh the balance; that is the line's machine.
            let user = bench.user(user);
            let open = bench.wait(world.stores.sessions.find_open(&user)).expect("readable");
            if open.is_none() {
                bench.learn(bench.wait(world.open(user.as_str(), balance)).id);
            }
            Due::Code(Ok(()))
        }
        Step::Drain => Due::Count(bench.wait(world.drain())),
        Step::Claim(agent, chat) => {
            let admin = bench.admin(agent);
            Due::Code(code(bench.wait(world.claim(&admin, bench.sessions[chat]))))
        }
        Step::Transfer(who, chat, target) => {
            let (caller, target) = (who.caller(), bench.admin(target));
            let answer = bench.wait(world.transfer(&caller, bench.sessions[chat], &target));
            Due::Code(code(answer))
        }
        Step::End(who, chat) => {
            let answer = bench.wait(world.end(&who.caller(), bench.sessions[chat]));
            Due::Code(code(answer))
        }
        Step::Online(agent, cap) => {
            let caller = Who::Agent(agent).caller();
            let answer = bench.wait(world.assignments.go_online(&caller, cap, here, trace));
            Due::Code(code(answer))
        }
        Step::Offline(agent, back) => {
            Due::Code(code(bench.wait(world.offline(&bench.admin(agent), back))))
        }
        Step::Connect(agent) => {
            let info = build::agent_info(bench.admin(agent).as_str());
            bench.wait(world.connect(&info));
            Due::Code(Ok(()))
        }
        Step::Vanish(agent) => {
            bench.wait(world.vanish(&bench.admin(agent)));
            Due::Code(Ok(()))
        }
        Step::Pass(seconds) => {
            world.clock.advance(Duration::from_secs(seconds.unsigned_abs()));
            Due::Code(Ok(()))
        }
        Step::Sweep => {
            let before = world.clock.now().before(Duration::from_secs(GRACE.unsigned_abs()));
            let met = bench.wait(world.assignments.requeue_gone(before, trace));
            Due::Count(met.expect("the store answers"))
        }
    }
}

#[test]
fn on_memory() {
    holds::<Assignment<OnMemory>>(file!(), 256, 60);
}

#[test]
fn on_sqlite() {
    holds::<Assignment<OnSqlite>>(file!(), 6, 15);
}

#[test]
fn on_postgres() {
    holds::<Assignment<OnPostgres>>(file!(), 6, 15);
}

#[test]
fn a_load_that_is_not_given_back_is_noticed() {
    caught::<Assignment<LoadKept>>("has load");
}

#[test]
fn a_cap_off_by_one_is_noticed() {
    caught::<Assignment<CapOffByOne>>("the answer to");
}

#[test]
fn ties_by_id_are_noticed() {
    caught::<Assignment<TiesById>>("load");
}

#[test]
fn an_ignored_absence_is_noticed() {
    caught::<Assignment<LivenessIgnored>>("the answer to");
}
