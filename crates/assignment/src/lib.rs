//! Who serves whom. Every transaction that changes a load lives here: the drain pass (the only
//! automatic assigner, Z2), claim, transfer, requeue and end, besides an agent's availability and
//! liveness.
//!
//! The rules are pure functions over a [`Snapshot`] that the store took under lock; the services
//! [`Assignments`] and [`Drain`] build them into use cases.

mod agent;
mod claim;
mod drain;
mod end;
mod lock;
mod pass;
mod policy;
mod record;
mod requeue;
mod service;
mod store;
mod transfer;

pub use claim::decide_claim;
pub use drain::Drain;
pub use lock::{AssignLock, LockToken};
pub use pass::{Pair, decide_pass, plan_pass, scope_of};
pub use policy::{Candidate, Rule, choose, preference};
pub use record::{DecisionRecord, Outcome};
pub use service::{AssignmentError, Assignments, Origin};
pub use store::{AssignmentDecision, AssignmentStore, Change, Scope, Snapshot, Verdict};
