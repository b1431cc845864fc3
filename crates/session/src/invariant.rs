//! What must hold of stored sessions whatever happened before, as pure functions over rows.
//!
//! Written against the promises, not against the transitions, so that tests, and whoever audits a
//! database, do not repeat the rules they check.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Session, Status};

/// One broken promise, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    /// A broken promise.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Waiting has no owner, active has one, ended has a time and an author.
#[must_use]
pub fn check_state(session: &Session) -> Vec<Violation> {
    let sound = match session.status {
        Status::Waiting => session.admin_id.is_none() && session.ended_at.is_none(),
        Status::Active => session.admin_id.is_some() && session.ended_at.is_none(),
        Status::Ended => session.ended_at.is_some() && session.ended_by.is_some(),
    };
    if sound { Vec::new() } else { vec![Violation(format!("impossible state: {session:?}"))] }
}

/// A user has at most one open session (S1).
#[must_use]
pub fn check_one_open(sessions: &[Session]) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    sessions
        .iter()
        .filter(|session| session.is_open() && !seen.insert(&session.user.user_id))
        .map(|session| Violation(format!("{} has two open sessions", session.user.user_id)))
        .collect()
}

/// What one session may become: positions and versions only grow, every change is a new version, who
/// and when it began stay, the end is final but for its rating (S2, S3), and the time waited since
/// is kept (Z7).
#[must_use]
pub fn check_succession(before: &Session, after: &Session) -> Vec<Violation> {
    let id = before.id;
    let mut found = Vec::new();
    let mut report = |holds: bool, what: &str| {
        if !holds {
            found.push(Violation(format!("session {id}: {what}")));
        }
    };
    report(after.id == id, "became another session");
    report(after.user.user_id == before.user.user_id, "changed its user");
    report(after.started_at == before.started_at, "began at another time");
    report(after.queued_at == before.queued_at, "lost the time it had waited");
    report(after.last_seq >= before.last_seq, "lost a position");
    report(after.last_msg_id >= before.last_msg_id, "its last message became an older one");
    report(after.version >= before.version, "its version went back");
    report(after == before || after.version > before.version, "changed under the same version");
    report(after.rating.is_some() || before.rating.is_none(), "lost its rating");
    if before.status == Status::Ended {
        let (rating, version) = (after.rating.clone(), after.version);
        report(*after == Session { rating, version, ..before.clone() }, "changed after its end");
    }
    found
}
