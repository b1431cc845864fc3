//! The system under test: real services over a backend, with who is who, and the rows it showed last.

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
    match answer {
        Ok(_) => Ok(()),
        Err(AssignmentError::Refused(refusal)) => Err(refusal.code()),
        Err(AssignmentError::Store(fault)) => panic!("the store failed: {fault}"),
    }
}

/// Real services over one fresh backend. Its fields go in this order, the runtime last.
#[derive(Debug)]
pub struct Bench<S: Setup> {
    world: Shown,
    harness: Kept<S::Harness>,
    /// The sessions in the order in which they were opened.
    pub sessions: Vec<SessionId>,
    agents: usize,
    before: Mutex<Ledger>,
    runtime: Runtime,
}
