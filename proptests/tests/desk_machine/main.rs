//! The whole desk against its visitors' model: connects, losses, restarts, intruders. After every step
//! everything that reached a device is held against what is stored.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod act;
mod checked;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::time::Duration;

use kefu_assignment::Origin;
use kefu_core::{AdminId, Caller, ConnId, Person, SessionId};
use kefu_messaging::Sender;
use kefu_proptests::model::house::House;
use kefu_proptests::model::visits::{Step, Visits};
use kefu_proptests::model::{
    AuthorFromClient, DeliveredAtOnce, FirstIsSkipped, OnMemory, PushesReachAll, Setup, Who,
    caught, holds,
};
use kefu_session::Session;
use kefu_session::invariant::Violation;
use kefu_testkit::check::Ledger;
use proptest_state_machine::StateMachineTest;

struct DeskMachine<S>(PhantomData<S>);

/// The house with what its people did so far.
struct Scene {
    house: House,
    /// Each visitor's devices.
    devices: BTreeMap<(usize, usize), ConnId>,
    agents: BTreeMap<usize, ConnId>,
    sessions: BTreeSet<SessionId>,
    acknowledged: BTreeSet<kefu_core::MsgId>,
    answers: usize,
    before: Ledger,
    found: Vec<Violation>,
}

impl<S: Setup> StateMachineTest for DeskMachine<S> {
    type SystemUnderTest = Scene;
    type Reference = Visits;

    fn init_test(_: &Visits) -> Scene {
        Scene {
            house: House::start::<S>(),
            devices: BTreeMap::new(),
            agents: BTreeMap::new(),
            sessions: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            answers: 0,
            before: Ledger::default(),
            found: Vec::new(),
        }
    }

    fn apply(mut scene: Scene, visits: &Visits, step: Step) -> Scene {
        scene.act(visits, step);
        scene.house.pass(Duration::from_millis(1));
        scene.settle();
        let found: Vec<_> = scene.found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "after {step:?}:\n{}", found.join("\n"));
        scene
    }

    /// What visitors said and have open is what the model says, whatever was lost on the way.
    fn check_invariants(scene: &Scene, visits: &Visits) {
        for (number, due) in visits.visitors.iter().enumerate() {
            assert_eq!(said_by(&scene.before, number), due.texts, "the texts of visitor {number}");
            assert_eq!(scene.open_of(number).is_some(), due.open, "a session of {number} is open");
        }
    }
}

fn visitor(number: usize) -> Caller {
    Who::User(number).caller()
}

fn agent(number: usize) -> Caller {
    Who::Agent(number).caller()
}

fn admin(number: usize) -> AdminId {
    match agent(number).person() {
        Person::Agent(admin) => admin,
        Person::User(_) => unreachable!("an agent"),
    }
}

const HERE: Origin = Origin(None);

fn takes_part(session: &Session, person: &Person) -> bool {
    match person {
        Person::User(user) => session.user.user_id == *user,
        Person::Agent(admin) => session.admin_id.as_ref() == Some(admin),
    }
}

/// The numbers of what a visitor said, over all sessions, oldest first.
fn said_by(now: &Ledger, number: usize) -> Vec<usize> {
    let Person::User(user) = visitor(number).person() else { unreachable!("a user") };
    let mut said: Vec<_> = now.messages.values().flatten().collect();
    said.sort_by_key(|message| message.msg_id);
    let own = said.into_iter().filter(|message| message.sender == Sender::User(user.clone()));
    own.map(|message| message.content[1..].parse().expect("a number")).collect()
}

#[test]
fn on_memory() {
    holds::<DeskMachine<OnMemory>>(file!(), 256, 60);
}

#[test]
fn a_page_without_its_first_is_noticed() {
    caught::<DeskMachine<FirstIsSkipped>>("is handed out");
}

#[test]
fn a_lost_push_that_counts_as_delivered_is_noticed() {
    caught::<DeskMachine<DeliveredAtOnce>>("was acknowledged by nobody");
}

#[test]
fn an_author_named_by_the_client_is_noticed() {
    caught::<DeskMachine<AuthorFromClient>>("is by a stranger");
}

#[test]
fn a_push_that_reaches_everybody_is_noticed() {
    caught::<DeskMachine<PushesReachAll>>("is told");
}
