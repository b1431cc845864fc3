//! Claim: an agent with room takes a waiting session (Z6).

use kefu_core::{Actor, AgentInfo, IdSource, SessionId};
use kefu_events::{Envelope, Event, EventContext, How};
use kefu_session::{Refusal, Status};

use crate::{Candidate, Change, DecisionRecord, Outcome, Rule, Snapshot, Verdict};

/// Decides a claim. Of two at once one wins; the other finds the session not waiting.
#[must_use]
pub fn decide_claim(
    snapshot: &Snapshot,
    session: SessionId,
    claimant: &AgentInfo,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let Some(waiting) = snapshot.sessions.get(&session) else {
        return Verdict::Refuse(Refusal::NotFound);
    };
    match waiting.status {
        Status::Ended => return Verdict::Refuse(Refusal::SessionClosed),
        Status::Active => return Verdict::Refuse(Refusal::Conflict),
        Status::Waiting => {}
    }
    let agent = snapshot.agents.get(&claimant.admin_id).filter(|agent| agent.is_eligible());
    let Some(agent) = agent else {
        return Verdict::Refuse(Refusal::AgentUnavailable);
    };
    let assigned = match waiting.assigned(&claimant.admin_id, context.now) {
        Ok(assigned) => assigned,
        Err(refusal) => return Verdict::Refuse(refusal),
    };
    let actor = Actor::Agent(claimant.admin_id.clone());
    let record = DecisionRecord {
        id: snapshot.next_record(session, Some(agent), ids),
        session_id: session,
        admin_id: Some(claimant.admin_id.clone()),
        from: None,
        candidates: vec![Candidate::from(agent)],
        rule: Rule::Claim,
        outcome: Outcome::Claimed,
        actor: actor.clone(),
        note: None,
        time: context.now,
    };
    let event = Event::SessionAssigned {
        session_id: session,
        user_id: assigned.user.user_id.clone(),
        admin_id: claimant.admin_id.clone(),
        from: None,
        how: How::Claim,
        actor,
        version: assigned.version,
    };
    Verdict::Apply(Change {
        agents: vec![agent.loaded(record.id)],
        sessions: vec![assigned],
        records: vec![record],
        events: vec![Envelope::new(event, context, ids)],
    })
}
