//! The reference model of the waiting line: what each brought, and how long each has waited.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

/// How many users come; one agent has room for all of them.
pub const USERS: usize = 8;
/// Where a balance stops counting (Q1).
const MOST: i64 = 1 << 53;
/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;

/// Where somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the line.
    Waits,
    /// With the agent.
    Served,
    /// Over.
    Gone,
}

/// One stay of one user.
#[derive(Debug, Clone)]
pub struct Stay {
    /// Who.
    pub user: usize,
    /// What the newest token said while they waited.
    pub balance: Option<i64>,
    /// Where they are.
    pub place: Place,
    /// When they came.
    since: i64,
}

/// Everybody who ever came, in order of arrival.
#[derive(Debug, Clone)]
pub struct Hall {
    /// The stays.
    pub stays: Vec<Stay>,
    /// Minor units that a minute of waiting is worth.
    pub ageing: i64,
    /// Milliseconds since the start.
    now: i64,
}

/// One event.
#[derive(Debug, Clone)]
pub enum Step {
    /// A user comes, or comes again, with this balance.
    Arrive(usize, Option<i64>),
    /// A user reconnects, with this balance, opening nothing.
    Resume(usize, Option<i64>),
    /// Time passes, in milliseconds.
    Pass(u32),
    /// The agent takes somebody.
    Take(usize),
    /// A user leaves.
    Leave(usize),
    /// The agent gives everybody back (Z7).
    Requeue,
}

impl Hall {
    /// Those who wait, first served first: who has more, counting what their waiting is worth by now;
    /// among equals who came first.
    #[must_use]
    pub fn line(&self) -> Vec<usize> {
        let numbers = 0..self.stays.len();
        let mut line: Vec<_> =
            numbers.filter(|number| self.stays[*number].place == Place::Waits).collect();
        line.sort_by_key(|number| -self.worth(&self.stays[*number]));
        line
    }

    fn worth(&self, stay: &Stay) -> i64 {
        let minutes = self.now / MINUTE - stay.since / MINUTE;
        stay.balance.unwrap_or(0).min(MOST) + self.ageing * minutes
    }

    fn open(&mut self, user: usize) -> Option<&mut Stay> {
        self.stays.iter_mut().find(|stay| stay.user == user && stay.place != Place::Gone)
    }

    fn come(&mut self, user: usize, balance: Option<i64>, may_open: bool) {
        let since = self.now;
        match self.open(user) {
            Some(stay) if stay.place == Place::Waits => stay.balance = balance,
            None if may_open => {
                self.stays.push(Stay { user, balance, place: Place::Waits, since });
            }
            Some(_) | None => {}
        }
    }
}

fn balances() -> impl Strategy<Value = Option<i64>> + Clone {
    prop_oneof![
        1 => Just(None),
        6 => (-3_i64..=3).prop_map(|tens| Some(tens * 10)),
        2 => (-100_000_i64..=100_000).prop_map(Some),
        1 => (0_i64..=1).prop_map(|over| Some(MOST + over)),
    ]
}

impl ReferenceStateMachine for Hall {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        prop_oneof![Just(0), Just(1), Just(10)]
            .prop_map(|ageing| Self { stays: Vec::new(), ageing, now: 0 })
            .boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Step> {
        let come = prop_oneof![
            6 => (0..USERS, balances()).prop_map(|(user, balance)| Step::Arrive(user, balance)),
            2 => (0..USERS, balances()).prop_map(|(user, balance)| Step::Resume(user, balance)),
            4 => (0_u32..=300_000).prop_map(Step::Pass),
            1 => Just(Step::Requeue),
        ];
        if state.stays.is_empty() {
            return come.boxed();
        }
        let stays = 0..state.stays.len();
        prop_oneof![
            13 => come,
            4 => stays.clone().prop_map(Step::Take),
            1 => stays.prop_map(Step::Leave),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        let place = |number: usize| state.stays.get(number).map(|stay| stay.place);
        match step {
            Step::Take(number) => place(*number) == Some(Place::Waits),
            Step::Leave(number) => place(*number).is_some_and(|place| place != Place::Gone),
            _ => true,
        }
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        match *step {
            Step::Arrive(user, balance) => state.come(user, balance, true),
            Step::Resume(user, balance) => state.come(user, balance, false),
            Step::Pass(millis) => state.now += i64::from(millis),
            Step::Take(number) => state.stays[number].place = Place::Served,
            Step::Leave(number) => state.stays[number].place = Place::Gone,
            Step::Requeue => {
                let served = state.stays.iter_mut().filter(|stay| stay.place == Place::Served);
                served.for_each(|stay| stay.place = Place::Waits);
            }
        }
        state
    }
}
