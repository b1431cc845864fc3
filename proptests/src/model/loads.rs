//! The reference model of 2.6: who has how many, under arrivals, ends, transfers and agents who come and
//! go. Everybody's balance is the same.

use proptest::prelude::*;

/// How many agents work.
pub const AGENTS: usize = 4;

/// One act; sessions by number.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Somebody comes.
    Arrive,
    /// A session ends.
    End(usize),
    /// A supervisor moves a session to an agent.
    Transfer(usize, usize),
    /// An agent takes sessions, up to a cap.
    Online(usize, u32),
    /// An agent takes no more, and may give back what there is.
    Offline(usize, bool),
    /// An agent's connection is lost.
    Vanish(usize),
    /// An agent's connection is back.
    Return(usize),
    /// The wall clock steps, in milliseconds.
    Clock(i64),
}

/// Any act.
pub fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::Arrive),
        3 => any::<usize>().prop_map(Act::End),
        2 => (any::<usize>(), 0..AGENTS).prop_map(|(session, to)| Act::Transfer(session, to)),
        2 => (0..AGENTS, 1..=4_u32).prop_map(|(agent, cap)| Act::Online(agent, cap)),
        1 => (0..AGENTS, any::<bool>()).prop_map(|(agent, requeue)| Act::Offline(agent, requeue)),
        1 => (0..AGENTS).prop_map(Act::Vanish),
        1 => (0..AGENTS).prop_map(Act::Return),
        1 => (-300_000..=300_000_i64).prop_map(Act::Clock),
    ]
}

/// One agent.
#[derive(Debug, Clone, Default)]
pub struct ModelAgent {
    is_online: bool,
    is_live: bool,
    cap: u32,
    /// How many sessions it has.
    pub load: u32,
    /// When it was last given a session, in turns.
    last: Option<u32>,
}

impl ModelAgent {
    const fn takes(&self) -> bool {
        self.is_online && self.is_live && self.load < self.cap
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nobody's.
    Waiting,
    /// This agent's.
    With(usize),
    /// Over.
    Ended,
}

/// Agents and sessions.
#[derive(Debug, Default)]
pub struct Loads {
    /// The agents.
    pub agents: [ModelAgent; AGENTS],
    /// The sessions, in order of arrival.
    pub sessions: Vec<Place>,
    turn: u32,
}

impl Loads {
    fn give(&mut self, session: usize, to: usize) {
        self.turn += 1;
        self.agents[to].load += 1;
        self.agents[to].last = Some(self.turn);
        self.sessions[session] = Place::With(to);
    }

    fn take_back(&mut self, session: usize, place: Place) {
        if let Place::With(agent) = self.sessions[session] {
            self.agents[agent].load -= 1;
        }
        self.sessions[session] = place;
    }

    /// One act, and the pass that follows it.
    pub fn act(&mut self, act: Act) {
        match act {
            Act::Arrive => self.sessions.push(Place::Waiting),
            Act::End(session) => self.take_back(session, Place::Ended),
            Act::Transfer(session, to) => {
                let is_elsewhere =
                    matches!(self.sessions[session], Place::With(owner) if owner != to);
                if is_elsewhere && self.agents[to].takes() {
                    self.take_back(session, Place::Waiting);
                    self.give(session, to);
                }
            }
            Act::Online(agent, cap) => {
                self.agents[agent].is_online = true;
                self.agents[agent].cap = cap;
            }
            Act::Offline(agent, requeue) => {
                self.agents[agent].is_online = false;
                for session in 0..self.sessions.len() {
                    if requeue && self.sessions[session] == Place::With(agent) {
                        self.take_back(session, Place::Waiting);
                    }
                }
            }
            Act::Vanish(agent) => self.agents[agent].is_live = false,
            Act::Return(agent) => self.agents[agent].is_live = true,
            Act::Clock(_) => {}
        }
        self.drain();
    }

    /// The line is the order of arrival.
    fn drain(&mut self) {
        for session in 0..self.sessions.len() {
            if self.sessions[session] != Place::Waiting {
                continue;
            }
            let takers = (0..AGENTS).filter(|agent| self.agents[*agent].takes());
            let chosen = takers.min_by_key(|agent| {
                let ModelAgent { load, last, .. } = self.agents[*agent];
                (load, last, *agent)
            });
            let Some(chosen) = chosen else { return };
            self.give(session, chosen);
        }
    }
}
