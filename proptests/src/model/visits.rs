//! The reference model of the whole desk as its visitors know it: who is connected, who has a session,
//! and what each said. Agents, retries and losses are not in it: they must change nothing here.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

/// How many visitors come.
pub const VISITORS: usize = 3;
/// How many devices each has.
pub const DEVICES: usize = 2;
/// How many agents work.
pub const AGENTS: usize = 2;

/// One visitor.
#[derive(Debug, Clone, Default)]
pub struct Visitor {
    /// Which devices are connected.
    pub devices: [bool; DEVICES],
    /// Whether a session is open.
    pub open: bool,
    /// The texts that were answered as stored, over all sessions.
    pub texts: Vec<usize>,
}

/// All visitors.
#[derive(Debug, Clone, Default)]
pub struct Visits {
    /// The visitors.
    pub visitors: Vec<Visitor>,
    /// How many texts were said, which names the next.
    pub said: usize,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// A visitor's device connects, and asks to be served or goes on; with its position or without.
    Connect {
        /// Who.
        visitor: usize,
        /// By which device.
        device: usize,
        /// Whether it opens a session.
        consult: bool,
        /// Whether it says what it has.
        position: bool,
    },
    /// A visitor's device goes without a word.
    Drop(usize, usize),
    /// From now on what is pushed to a visitor's device is lost on the way.
    Deafen(usize, usize),
    /// A visitor says something new.
    Say(usize, usize),
    /// A visitor says the last text again, as after a lost answer.
    Repeat(usize, usize),
    /// A device reports all it has as delivered.
    Report(usize, usize),
    /// A visitor ends the session.
    End(usize),
    /// A visitor tries another's session: reading, saying, reporting, typing, ending.
    Intrude(usize, usize),
    /// An agent connects and takes sessions.
    Come(usize),
    /// An agent's connection goes.
    Leave(usize),
    /// What is pushed to an agent is lost on the way.
    DeafenAgent(usize),
    /// An agent says something in one of the sessions there are.
    Answer(usize, usize),
    /// An agent reports all there is as delivered.
    ReportByAgent(usize),
    /// An agent hands one of the sessions to a colleague, with a note.
    Handover(usize, usize),
    /// An agent gives all sessions back.
    GiveBack(usize),
    /// Seconds pass, in which pushes are repeated and given up.
    Pass(u64),
    /// The process dies without a word, and another starts with empty coordination.
    Restart,
}

impl Visits {
    fn has(&self, visitor: usize, device: usize) -> bool {
        self.visitors[visitor].devices[device]
    }
}

impl ReferenceStateMachine for Visits {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { visitors: vec![Visitor::default(); VISITORS], said: 0 }).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        let device = || (0..VISITORS, 0..DEVICES);
        let agent = || 0..AGENTS;
        let connect = (device(), prop::bool::weighted(0.8), any::<bool>());
        prop_oneof![
            8 => connect.prop_map(|((visitor, device), consult, position)| {
                Step::Connect { visitor, device, consult, position }
            }),
            2 => device().prop_map(|(visitor, device)| Step::Drop(visitor, device)),
            2 => device().prop_map(|(visitor, device)| Step::Deafen(visitor, device)),
            8 => device().prop_map(|(visitor, device)| Step::Say(visitor, device)),
            2 => device().prop_map(|(visitor, device)| Step::Repeat(visitor, device)),
            3 => device().prop_map(|(visitor, device)| Step::Report(visitor, device)),
            1 => (0..VISITORS).prop_map(Step::End),
            2 => (0..VISITORS, 0..VISITORS).prop_map(|(who, whose)| Step::Intrude(who, whose)),
            4 => agent().prop_map(Step::Come),
            1 => agent().prop_map(Step::Leave),
            1 => agent().prop_map(Step::DeafenAgent),
            6 => (agent(), any::<usize>()).prop_map(|(agent, which)| Step::Answer(agent, which)),
            2 => agent().prop_map(Step::ReportByAgent),
            2 => (agent(), any::<usize>()).prop_map(|(agent, which)| Step::Handover(agent, which)),
            1 => agent().prop_map(Step::GiveBack),
            2 => (1..=12_u64).prop_map(Step::Pass),
            1 => Just(Step::Restart),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        match *step {
            Step::Connect { visitor, device, .. } => !state.has(visitor, device),
            Step::Drop(visitor, device)
            | Step::Deafen(visitor, device)
            | Step::Report(visitor, device) => state.has(visitor, device),
            Step::Say(visitor, device) => {
                state.has(visitor, device) && state.visitors[visitor].open
            }
            Step::Repeat(visitor, device) => {
                state.has(visitor, device) && !state.visitors[visitor].texts.is_empty()
            }
            Step::End(visitor) => state.visitors[visitor].open,
            Step::Intrude(who, whose) => who != whose,
            _ => true,
        }
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        match *step {
            Step::Connect { visitor, device, consult, .. } => {
                state.visitors[visitor].devices[device] = true;
                state.visitors[visitor].open |= consult;
            }
            Step::Drop(visitor, device) => state.visitors[visitor].devices[device] = false,
            Step::Say(visitor, _) => {
                state.visitors[visitor].texts.push(state.said);
                state.said += 1;
            }
            Step::End(visitor) => state.visitors[visitor].open = false,
            Step::Restart => {
                state.visitors.iter_mut().for_each(|visitor| visitor.devices = [false; DEVICES]);
            }
            _ => {}
        }
        state
    }
}
