//! What must hold of loads, owners and decisions whatever happened before, as pure functions over
//! rows.

use std::collections::{BTreeMap, BTreeSet};

use kefu_core::{AdminId, SessionId};
use kefu_presence::Agent;
use kefu_queue::Line;
use kefu_session::invariant::Violation;
use kefu_session::{Session, Status};

use crate::{DecisionRecord, Outcome, Rule};

/// The load is within the cap (2.6, CC-03).
///
/// A cap lowered below the present load is legal: where that happens, [`check_gain`] says what still
/// holds.
#[must_use]
pub fn check_cap(agent: &Agent) -> Vec<Violation> {
    let (id, load, cap) = (&agent.info.admin_id, agent.active_sessions, agent.max_sessions);
    if load <= cap {
        return Vec::new();
    }
    vec![Violation::new(format!("{id} has load {load} above cap {cap}"))]
}

/// The load equals the number of the agent's live sessions (2.6).
#[must_use]
pub fn check_count(agent: &Agent, owned: &[Session]) -> Vec<Violation> {
    let (id, load) = (&agent.info.admin_id, agent.active_sessions);
    let mut found = Vec::new();
    if load as usize != owned.len() {
        found.push(Violation::new(format!("{id} has load {load} and owns {}", owned.len())));
    }
    if owned.iter().any(|session| !session.is_owned_by(id)) {
        found.push(Violation::new(format!("{id} lists sessions of others")));
    }
    found
}

/// A load grows only within the cap (CC-03), whatever the cap was when the old ones were given.
#[must_use]
pub fn check_gain(before: &Agent, after: &Agent) -> Vec<Violation> {
    let (id, load, cap) = (&after.info.admin_id, after.active_sessions, after.max_sessions);
    if load <= before.active_sessions || load <= cap {
        return Vec::new();
    }
    vec![Violation::new(format!("{id} was given a session above cap {cap}: load {load}"))]
}

/// No session has two owners, and the owners' lists and the sessions' own rows agree.
#[must_use]
pub fn check_owners(agents: &[(Agent, Vec<Session>)], sessions: &[Session]) -> Vec<Violation> {
    let mut owners: BTreeMap<SessionId, Vec<&AdminId>> = BTreeMap::new();
    for (agent, owned) in agents {
        for session in owned {
            owners.entry(session.id).or_default().push(&agent.info.admin_id);
        }
    }
    let twice = owners.iter().filter(|(_, admins)| admins.len() > 1);
    let mut found: Vec<_> = twice
        .map(|(id, admins)| Violation::new(format!("session {id} is owned by {admins:?}")))
        .collect();
    let known: BTreeSet<_> = agents.iter().map(|(agent, _)| &agent.info.admin_id).collect();
    for session in sessions.iter().filter(|session| session.status == Status::Active) {
        let owner = session.admin_id.as_ref().filter(|owner| known.contains(owner));
        let listed = owners.get(&session.id).and_then(|admins| admins.first());
        if let Some(owner) = owner
            && listed != Some(&owner)
        {
            let id = session.id;
            found.push(Violation::new(format!("session {id} of {owner} is not listed")));
        }
    }
    found
}

/// Records are in order, end with the present owner, and one end is one record (S4).
#[must_use]
pub fn check_records(session: &Session, records: &[DecisionRecord]) -> Vec<Violation> {
    let id = session.id;
    let mut found = Vec::new();
    let mut report = |holds: bool, what: &str| {
        if !holds {
            found.push(Violation::new(format!("session {id}: {what}")));
        }
    };
    report(records.is_sorted_by(|a, b| a.id < b.id), "records are not listed by id");
    let ends = records.iter().filter(|record| record.outcome == Outcome::Ended).count();
    report(ends == usize::from(session.status == Status::Ended), "ends and end records differ");
    let owner = records.last().and_then(|record| record.admin_id.clone());
    report(owner == session.admin_id, "the last record names another owner");
    let chained = records.windows(2).all(|pair| match pair {
        [before, after] => before.admin_id == after.from,
        _ => true,
    });
    report(chained, "a record does not begin where the one before ended");
    found
}

/// Whoever a session went to had room then, and nobody who was considered had less to do when the
/// router chose (Z1, 2.6).
#[must_use]
pub fn check_choice(record: &DecisionRecord) -> Vec<Violation> {
    let id = record.session_id;
    let Some(admin) = record.admin_id.as_ref().filter(|_| record.rule != Rule::None) else {
        return Vec::new();
    };
    let Some(chosen) = record.candidates.iter().find(|other| other.admin_id == *admin) else {
        return vec![Violation::new(format!("session {id} went to {admin}, who was no candidate"))];
    };
    let mut found = Vec::new();
    if chosen.load >= chosen.max_sessions {
        found.push(Violation::new(format!("session {id} went to {admin}, who had no room")));
    }
    let idler = record.candidates.iter().find(|other| {
        record.rule == Rule::LeastLoad
            && other.load < other.max_sessions
            && other.load < chosen.load
    });
    if let Some(idler) = idler {
        let idler = &idler.admin_id;
        found.push(Violation::new(format!("session {id} went to {admin} past {idler}")));
    }
    found
}

/// In a quiet system nobody waits while an eligible agent has room (Z3).
#[must_use]
pub fn check_quiet(line: &Line, agents: &[Agent]) -> Vec<Violation> {
    let idle = agents.iter().find(|agent| agent.is_eligible());
    match (line.sessions.first(), idle) {
        (Some(head), Some(agent)) => {
            let (id, admin) = (head.id, &agent.info.admin_id);
            vec![Violation::new(format!("session {id} waits while {admin} has room"))]
        }
        _ => Vec::new(),
    }
}
