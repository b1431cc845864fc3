#![doc = include_str!("../README.md")]

mod agent;
mod board;
mod claim;
mod drain;
mod end;
pub mod invariant;
mod lock;
mod pass;
mod policy;
mod record;
mod requeue;
mod service;
mod store;
mod sync;
mod transfer;
mod turn;

pub use board::{BoardPage, LoadBoard, LoadCopy, SessionCopy};
pub use claim::decide_claim;
pub use drain::Drain;
pub use lock::{AssignLock, LockToken};
pub use pass::{Pair, decide_pass, plan_pass, scope_of};
pub use policy::{Candidate, Rule, choose, preference};
pub use record::{DecisionRecord, Outcome};
pub use service::{AssignmentError, Assignments, Origin};
pub use store::{AssignmentDecision, AssignmentStore, Change, Scope, Snapshot, Verdict};
