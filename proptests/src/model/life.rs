//! The reference model of a session's life: every event from every side.

use kefu_core::ErrorCode;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::{Standing, Who};

/// How many users come.
pub const USERS: usize = 3;
/// How many agents work, with more room than the users need.
pub const AGENTS: usize = 2;

/// One stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its author.
    pub who: Who,
    /// The author's key.
    pub key: u8,
    /// What it says.
    pub words: u8,
}

/// One conversation.
#[derive(Debug, Clone)]
pub struct Chat {
    /// Whose it is, and where it stands.
    pub standing: Standing,
    /// What was said, in order.
    pub texts: Vec<Text>,
    /// The user's judgement.
    pub stars: Option<u8>,
}

/// All conversations, oldest first, and what the last step must have answered.
#[derive(Debug, Clone)]
pub struct Life {
    /// The conversations.
    pub chats: Vec<Chat>,
    /// The answer that is due.
    pub due: Result<(), ErrorCode>,
}

/// One event.
#[derive(Debug, Clone)]
pub enum Step {
    /// A user asks to be served (S1).
    Connect(usize),
    /// Somebody takes a conversation (Z6).
    Claim(Who, usize),
    /// Somebody hands a conversation to an agent (Z5).
    Transfer(Who, usize, usize),
    /// Somebody ends a conversation (S4).
    End(Who, usize),
    /// Somebody judges a conversation (S3).
    Rate(Who, usize, u8),
    /// A user or an agent says something.
    Say(Who, usize, u8, u8),
    /// An agent gives all conversations back and goes on working (Z7).
    Requeue(usize),
    /// The machine's clock steps, by milliseconds (T1).
    ClockStep(i64),
}

impl Step {
    const fn chat(&self) -> Option<usize> {
        match self {
            Self::Claim(_, chat)
            | Self::Transfer(_, chat, _)
            | Self::End(_, chat)
            | Self::Rate(_, chat, _)
            | Self::Say(_, chat, _, _) => Some(*chat),
            Self::Connect(_) | Self::Requeue(_) | Self::ClockStep(_) => None,
        }
    }
}

impl Chat {
    fn claim(&mut self, who: Who) -> Result<(), ErrorCode> {
        let Who::Agent(agent) = who else { return Err(ErrorCode::Forbidden) };
        self.standing.claim(agent, true)
    }

    fn rate(&mut self, who: Who, stars: u8) -> Result<(), ErrorCode> {
        if !matches!(who, Who::User(_)) {
            return Err(ErrorCode::Forbidden);
        }
        if !self.standing.concerns(who) {
            return Err(ErrorCode::NotFound);
        }
        if stars == 0 || stars > 5 {
            return Err(ErrorCode::BadRequest);
        }
        self.stars = Some(stars);
        Ok(())
    }

    fn say(&mut self, text: Text) -> Result<(), ErrorCode> {
        let earlier = self.texts.iter().find(|old| old.who == text.who && old.key == text.key);
        if let Some(earlier) = earlier {
            return if *earlier == text { Ok(()) } else { Err(ErrorCode::Conflict) };
        }
        if !self.standing.concerns(text.who) {
            return Err(ErrorCode::NotFound);
        }
        if self.standing.is_over() {
            return Err(ErrorCode::SessionClosed);
        }
        self.texts.push(text);
        Ok(())
    }
}

impl Life {
    fn connect(&mut self, user: usize) {
        let there = |chat: &Chat| chat.standing.user == user && !chat.standing.is_over();
        let open = self.chats.iter().any(there);
        if !open {
            let standing = Standing::new(user);
            self.chats.push(Chat { standing, texts: Vec::new(), stars: None });
        }
    }

    fn requeue(&mut self, agent: usize) {
        self.chats.iter_mut().for_each(|chat| chat.standing.give_back(agent));
    }
}

impl ReferenceStateMachine for Life {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { chats: Vec::new(), due: Ok(()) }).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Step> {
        let any = prop_oneof![
            4 => (0..USERS).prop_map(Step::Connect),
            1 => (0..AGENTS).prop_map(Step::Requeue),
            1 => (-300_000_i64..=300_000).prop_map(Step::ClockStep),
        ];
        if state.chats.is_empty() {
            return any.boxed();
        }
        let chat = 0..state.chats.len();
        let party = prop_oneof![
            2 => (0..USERS).prop_map(Who::User),
            3 => (0..AGENTS).prop_map(Who::Agent),
        ];
        let who = prop_oneof![5 => party.clone(), 1 => Just(Who::Boss)];
        prop_oneof![
            4 => any,
            4 => (who.clone(), chat.clone()).prop_map(|(w, c)| Step::Claim(w, c)),
            4 => (who.clone(), chat.clone(), 0..=AGENTS)
                .prop_map(|(w, c, to)| Step::Transfer(w, c, to)),
            2 => (who.clone(), chat.clone()).prop_map(|(w, c)| Step::End(w, c)),
            2 => (who, chat.clone(), 0_u8..=6).prop_map(|(w, c, n)| Step::Rate(w, c, n)),
            6 => (party, chat, 0_u8..4, 0_u8..2).prop_map(|(w, c, k, t)| Step::Say(w, c, k, t)),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        step.chat().is_none_or(|chat| chat < state.chats.len())
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        let chats = &mut state.chats;
        state.due = match *step {
            Step::Claim(who, chat) => chats[chat].claim(who),
            Step::Transfer(who, chat, target) => {
                chats[chat].standing.transfer(who, target, target < AGENTS).map(drop)
            }
            Step::End(who, chat) => chats[chat].standing.end(who),
            Step::Rate(who, chat, stars) => chats[chat].rate(who, stars),
            Step::Say(who, chat, key, words) => chats[chat].say(Text { who, key, words }),
            Step::Connect(_) | Step::Requeue(_) | Step::ClockStep(_) => Ok(()),
        };
        match *step {
            Step::Connect(user) => state.connect(user),
            Step::Requeue(agent) => state.requeue(agent),
            _ => {}
        }
        state
    }
}
