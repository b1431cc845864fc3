//! What must hold of the whole waiting line whatever happened before, as pure functions over rows.

use std::collections::BTreeSet;

use kefu_core::SessionId;
use kefu_session::invariant::Violation;
use kefu_session::{Session, Status};

use crate::{Line, Place};

/// The line counts itself, is in the order of Q1, and among `sessions` holds exactly those who wait.
#[must_use]
pub fn check_line(line: &Line, sessions: &[Session]) -> Vec<Violation> {
    let mut found = Vec::new();
    if line.total as usize != line.sessions.len() {
        let (total, len) = (line.total, line.sessions.len());
        found.push(Violation::new(format!("the line says {total} and holds {len}")));
    }
    let in_order = line.sessions.is_sorted_by(|left, right| {
        left.priority > right.priority || left.priority == right.priority && left.id < right.id
    });
    if !in_order {
        found.push(Violation::new("the line is not in order (Q1)"));
    }
    let listed: BTreeSet<_> = line.sessions.iter().map(|session| session.id).collect();
    for session in sessions {
        let waits = session.status == Status::Waiting;
        if waits != listed.contains(&session.id) {
            let id = session.id;
            found.push(Violation::new(format!("session {id} waits: {waits}; in line: {}", !waits)));
        }
    }
    found
}

/// A place is one more than the number strictly ahead, of as many as wait; nobody else has one.
#[must_use]
pub fn check_place(line: &Line, session: SessionId, place: Option<Place>) -> Vec<Violation> {
    let index = line.sessions.iter().position(|other| other.id == session);
    let ahead = index.and_then(|index| u32::try_from(index).ok());
    let due = ahead.map(|ahead| Place { position: ahead + 1, total: line.total });
    if due == place {
        return Vec::new();
    }
    vec![Violation::new(format!("session {session} is told {place:?} and stands at {due:?}"))]
}
