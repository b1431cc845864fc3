//! The system under test: real services over a backend, with who is who, and the rows it showed last.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use kefu_assignment::AssignmentError;
use kefu_assignment::invariant::{check_choice, check_gain};
use kefu_core::{AdminId, Caller, ErrorCode, SessionId, UserId};
use kefu_messaging::invariant::check_growth;
use kefu_session::invariant::{Violation, check_succession};
use kefu_testkit::check::Ledger;
use kefu_testkit::{Harness, World, build};
use tokio::runtime::{Builder, Runtime};

use super::bent::bent;
use super::{Break, Setup};

/// A person, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A visitor.
    User(usize),
    /// An agent.
    Agent(usize),
    /// A supervisor.
    Boss,
}

impl Who {
    /// The verified caller.
    #[must_use]
    pub fn caller(self) -> Caller {
        match self {
            Self::User(number) => build::user_caller(&user_id(number)),
            Self::Agent(number) => build::agent_caller(&admin_id(number)),
            Self::Boss => build::supervisor_caller("boss"),
        }
    }
}

fn user_id(number: usize) -> UserId {
    build::user(&format!("u{number}"), 0).user_id
}

fn admin_id(number: usize) -> AdminId {
    build::admin(&format!("a{number}"))
}

/// The code behind an answer of the services.
///
/// # Errors
/// The code of the refusal.
///
/// # Panics
/// When the store failed, as it does when a table's constraint is all that stops a broken rule.
pub fn code<T>(answer: Result<T, AssignmentError>) -> Result<(), ErrorCode> {
    match answer.map(drop) {
        Ok(()) => Ok(()),
        Err(AssignmentError::Refused(refusal)) => Err(refusal.code()),
        Err(AssignmentError::Store(fault)) => panic!("the store failed: {fault}"),
    }
}

/// Real services over one fresh backend. The runtime is dropped last.
pub struct Bench<S: Setup> {
    /// The services.
    pub world: World,
    /// The sessions in the order in which they were opened.
    pub sessions: Vec<SessionId>,
    agents: usize,
    before: Mutex<Ledger>,
    _backend: S::Harness,
    runtime: Runtime,
}

impl<S: Setup> Bench<S> {
    /// An empty world in which `agents` agents may appear.
    ///
    /// # Panics
    /// When the backend does not start.
    #[must_use]
    pub fn start(agents: usize) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let backend = runtime.block_on(S::Harness::start());
        let world = World::new(bent(backend.stores(), S::BROKEN));
        let before = Mutex::default();
        Self { world, sessions: Vec::new(), agents, before, _backend: backend, runtime }
    }

    /// Whether this rule is broken here.
    #[must_use]
    pub fn breaks(&self, rule: Break) -> bool {
        S::BROKEN == Some(rule)
    }

    /// Waits for the services.
    pub fn wait<F: Future>(&self, answer: F) -> F::Output {
        self.runtime.block_on(answer)
    }

    /// An agent's id.
    #[must_use]
    pub fn admin(&self, number: usize) -> AdminId {
        admin_id(number)
    }

    /// A user's id.
    #[must_use]
    pub fn user(&self, number: usize) -> UserId {
        user_id(number)
    }

    /// Lets an agent appear, online with room for `cap`.
    pub fn staff(&self, number: usize, cap: u32) {
        self.wait(self.world.agent(admin_id(number).as_str(), cap));
    }

    /// Remembers a session as the newest, unless it is known.
    pub fn learn(&mut self, session: SessionId) {
        if !self.sessions.contains(&session) {
            self.sessions.push(session);
        }
    }

    /// Reads everything and checks the invariants of the domain crates: those of the rows as they are,
    /// and those of what they became since the last call. Returns the rows.
    ///
    /// # Panics
    /// When anything does not hold.
    pub fn check(&self) -> Ledger {
        let admins: Vec<_> = (0..self.agents).map(admin_id).collect();
        let collected = Ledger::collect(&self.world.stores, self.sessions.iter().copied(), admins);
        let now = self.wait(collected).expect("readable");
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = now.violations_but_caps();
        found.extend(now.records.values().flatten().flat_map(check_choice));
        found.extend(became(&before, &now));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "invariants do not hold:\n{}", found.join("\n"));
        before.clone_from(&now);
        now
    }
}

/// What does not hold of the way from one reading to the next.
#[must_use]
pub fn became(before: &Ledger, now: &Ledger) -> Vec<Violation> {
    let mut found = Vec::new();
    for old in &before.sessions {
        let new = now.sessions.iter().find(|session| session.id == old.id);
        found.extend(match new {
            Some(new) => check_succession(old, new),
            None => vec![Violation::new(format!("session {} is gone", old.id))],
        });
    }
    for (session, old) in &before.messages {
        let new = now.messages.get(session).map_or(&[][..], Vec::as_slice);
        found.extend(check_growth(old, new));
    }
    for (new, _) in &now.agents {
        let old = before.agents.iter().find(|(old, _)| old.info.admin_id == new.info.admin_id);
        found.extend(old.into_iter().flat_map(|(old, _)| check_gain(old, new)));
    }
    found
}
