//! The reference model of assignment: who has whom, under every change of agents and caps.

use kefu_core::ErrorCode;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::{Stage, Standing, Who};

/// How many users come.
pub const USERS: usize = 9;
/// How many agents may appear.
pub const AGENTS: usize = 3;
/// How long an agent may be gone, in seconds (Z7).
pub const GRACE: i64 = 120;
/// The largest cap (CC-03).
const MOST: u32 = 10;

/// One agent.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Whether the agent chose to take sessions.
    pub online: bool,
    /// Whether the agent is connected.
    pub live: bool,
    /// How many sessions at most.
    pub cap: u32,
    /// When the agent was last given one; later is larger, zero is never.
    given: u64,
    /// Since when the agent is gone, in seconds.
    gone: Option<i64>,
}

/// One conversation.
#[derive(Debug, Clone)]
pub struct Chat {
    /// What the user has.
    pub balance: i64,
    /// Whose it is, and where it stands.
    pub standing: Standing,
}

/// What the last step must have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This code, or none.
    Code(Result<(), ErrorCode>),
    /// So many were assigned, or met.
    Count(usize),
}

/// Agents and conversations.
#[derive(Debug, Clone)]
pub struct Floor {
    /// The agents.
    pub workers: Vec<Worker>,
    /// The conversations, oldest first.
    pub chats: Vec<Chat>,
    /// The answer that is due.
    pub due: Due,
    /// Whether the last step gave away all that could be given.
    pub quiet: bool,
    given: u64,
    now: i64,
}

/// One event.
#[derive(Debug, Clone)]
pub enum Step {
    /// A user comes, with this balance, unless there already.
    Arrive(usize, i64),
    /// The drain passes (Z2).
    Drain,
    /// An agent takes a conversation (Z6).
    Claim(usize, usize),
    /// Somebody hands a conversation to an agent (Z5).
    Transfer(Who, usize, usize),
    /// Somebody ends a conversation (S4).
    End(Who, usize),
    /// An agent takes sessions, up to a cap (Z1).
    Online(usize, u32),
    /// An agent takes no more, and may give back the ones there are.
    Offline(usize, bool),
    /// An agent connects.
    Connect(usize),
    /// An agent's last connection is gone.
    Vanish(usize),
    /// Seconds pass.
    Pass(i64),
    /// The sweeper looks for agents gone too long (Z7).
    Sweep,
}

impl Step {
    const fn chat(&self) -> Option<usize> {
        match self {
            Self::Claim(_, chat) | Self::Transfer(_, chat, _) | Self::End(_, chat) => Some(*chat),
            _ => None,
        }
    }
}

impl Floor {
    /// How many conversations an agent has.
    #[must_use]
    pub fn load(&self, agent: usize) -> u32 {
        let held = self.chats.iter().filter(|chat| chat.standing.stage == Stage::With(agent));
        held.map(|_| 1).sum()
    }

    fn can_take(&self, agent: usize) -> bool {
        let worker = &self.workers[agent];
        worker.online && worker.live && self.load(agent) < worker.cap
    }

    /// Notes that this agent was just given one.
    fn count(&mut self, agent: usize) {
        self.given += 1;
        self.workers[agent].given = self.given;
    }

    /// The richest, then oldest, goes to whoever has least to do, then had nothing new for longest.
    fn drain(&mut self) -> usize {
        let mut count = 0;
        loop {
            let waits = |n: &usize| self.chats[*n].standing.stage == Stage::Waiting;
            let waiting = (0..self.chats.len()).filter(waits);
            let Some(head) = waiting.min_by_key(|n| (-self.chats[*n].balance, *n)) else {
                return count;
            };
            let able = (0..AGENTS).filter(|agent| self.can_take(*agent));
            let idlest = able.min_by_key(|n| (self.load(*n), self.workers[*n].given, *n));
            let Some(agent) = idlest else { return count };
            self.chats[head].standing.give(agent);
            self.count(agent);
            count += 1;
        }
    }

    fn claim(&mut self, agent: usize, chat: usize) -> Result<(), ErrorCode> {
        let has_room = self.can_take(agent);
        self.chats[chat].standing.claim(agent, has_room)?;
        self.count(agent);
        Ok(())
    }

    fn transfer(&mut self, who: Who, chat: usize, target: usize) -> Result<(), ErrorCode> {
        let has_room = self.can_take(target);
        if self.chats[chat].standing.transfer(who, target, has_room)? {
            self.count(target);
        }
        Ok(())
    }

    fn give_back(&mut self, agent: usize) {
        self.chats.iter_mut().for_each(|chat| chat.standing.give_back(agent));
    }

    fn online(&mut self, agent: usize, cap: u32) -> Result<(), ErrorCode> {
        if cap == 0 || cap > MOST {
            return Err(ErrorCode::BadRequest);
        }
        let worker = &mut self.workers[agent];
        worker.online = true;
        worker.cap = cap;
        Ok(())
    }

    fn offline(&mut self, agent: usize, back: bool) {
        self.workers[agent].online = false;
        if back {
            self.give_back(agent);
        }
    }

    fn vanish(&mut self, agent: usize) {
        let now = self.now;
        let worker = &mut self.workers[agent];
        if worker.live {
            worker.live = false;
            worker.gone = Some(now);
        }
    }

    fn sweep(&mut self) -> usize {
        let long_gone = |worker: &Worker| worker.gone.is_some_and(|gone| self.now - gone > GRACE);
        let met: Vec<_> = (0..AGENTS)
            .filter(|agent| long_gone(&self.workers[*agent]))
            .filter(|agent| self.workers[*agent].online || self.load(*agent) > 0)
            .collect();
        met.iter().for_each(|agent| self.offline(*agent, true));
        met.len()
    }

    fn arrive(&mut self, user: usize, balance: i64) {
        let there = |chat: &Chat| chat.standing.user == user && !chat.standing.is_over();
        if !self.chats.iter().any(there) {
            self.chats.push(Chat { balance, standing: Standing::new(user) });
        }
    }
}

impl ReferenceStateMachine for Floor {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        let worker = Worker { online: false, live: false, cap: MOST, given: 0, gone: None };
        let (workers, chats) = (vec![worker; AGENTS], Vec::new());
        let due = Due::Code(Ok(()));
        Just(Self { workers, chats, due, quiet: false, given: 0, now: 0 }).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Step> {
        let agent = 0..AGENTS;
        let cap = prop_oneof![8 => 1_u32..=3, 1 => Just(0), 1 => Just(MOST), 1 => Just(MOST + 1)];
        let any = prop_oneof![
            8 => (0..USERS, -2_i64..=2).prop_map(|(user, balance)| Step::Arrive(user, balance)),
            6 => Just(Step::Drain),
            4 => (agent.clone(), cap).prop_map(|(agent, cap)| Step::Online(agent, cap)),
            1 => (agent.clone(), any::<bool>()).prop_map(|(agent, back)| Step::Offline(agent, back)),
            4 => agent.clone().prop_map(Step::Connect),
            1 => agent.clone().prop_map(Step::Vanish),
            1 => (1..=2 * GRACE).prop_map(Step::Pass),
            1 => Just(Step::Sweep),
        ];
        if state.chats.is_empty() {
            return any.boxed();
        }
        let chat = 0..state.chats.len();
        let who = prop_oneof![
            2 => (0..USERS).prop_map(Who::User),
            6 => agent.clone().prop_map(Who::Agent),
            3 => Just(Who::Boss),
        ];
        prop_oneof![
            26 => any,
            4 => (agent.clone(), chat.clone()).prop_map(|(agent, chat)| Step::Claim(agent, chat)),
            5 => (who.clone(), chat.clone(), agent).prop_map(|(w, c, to)| Step::Transfer(w, c, to)),
            4 => (who, chat).prop_map(|(who, chat)| Step::End(who, chat)),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        step.chat().is_none_or(|chat| chat < state.chats.len())
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        state.due = Due::Code(Ok(()));
        state.quiet = matches!(step, Step::Drain);
        match *step {
            Step::Arrive(user, balance) => state.arrive(user, balance),
            Step::Drain => state.due = Due::Count(state.drain()),
            Step::Claim(agent, chat) => state.due = Due::Code(state.claim(agent, chat)),
            Step::Transfer(who, chat, to) => state.due = Due::Code(state.transfer(who, chat, to)),
            Step::End(who, chat) => state.due = Due::Code(state.chats[chat].standing.end(who)),
            Step::Online(agent, cap) => state.due = Due::Code(state.online(agent, cap)),
            Step::Offline(agent, back) => state.offline(agent, back),
            Step::Connect(agent) => {
                state.workers[agent].live = true;
                state.workers[agent].gone = None;
            }
            Step::Vanish(agent) => state.vanish(agent),
            Step::Pass(seconds) => state.now += seconds,
            Step::Sweep => state.due = Due::Count(state.sweep()),
        }
        state
    }
}
