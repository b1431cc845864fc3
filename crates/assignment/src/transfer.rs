//! Transfer: from its agent to a colleague with room, in one transaction (Z5, S4).

use kefu_core::{AdminId, Caller, IdSource, SessionId};
use kefu_events::{Envelope, Event, EventContext, How};
use kefu_presence::Agent;
use kefu_session::{Access, Refusal, Session, Status, access};

use crate::{Candidate, Change, DecisionRecord, Outcome, Rule, Snapshot, Verdict};

/// What a transfer asks for.
#[derive(Debug, Clone)]
pub(crate) struct TransferRequest {
    pub(crate) session: SessionId,
    pub(crate) target: AdminId,
    pub(crate) note: Option<String>,
    /// The owner when the scope was built.
    pub(crate) expected_owner: Option<AdminId>,
}

/// Decides a transfer. State is checked before the target (Z5).
#[must_use]
pub(crate) fn decide_transfer(
    snapshot: &Snapshot,
    caller: &Caller,
    request: &TransferRequest,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let Some(session) = snapshot.sessions.get(&request.session) else {
        return Verdict::Refuse(Refusal::NotFound);
    };
    if session.is_open() && session.admin_id != request.expected_owner {
        return Verdict::Stale;
    }
    if is_repeat(snapshot, session, caller, &request.target) {
        return Verdict::Apply(Change::default());
    }
    match check(snapshot, session, caller, &request.target) {
        Ok(parties) => apply(snapshot, session, parties, caller, request, context, ids),
        Err(refusal) => Verdict::Refuse(refusal),
    }
}

/// The same transfer by the same caller, while the session is still with that target (S4).
fn is_repeat(snapshot: &Snapshot, session: &Session, caller: &Caller, target: &AdminId) -> bool {
    let made_by_caller = snapshot.latest.get(&session.id).is_some_and(|record| {
        record.outcome == Outcome::Transferred
            && record.admin_id.as_ref() == Some(target)
            && record.actor == caller.actor()
    });
    made_by_caller && session.is_owned_by(target)
}

fn check<'a>(
    snapshot: &'a Snapshot,
    session: &Session,
    caller: &Caller,
    target: &AdminId,
) -> Result<(&'a Agent, &'a Agent), Refusal> {
    access(session, caller, Access::Transfer, false)?;
    match session.status {
        Status::Ended => return Err(Refusal::SessionClosed),
        Status::Waiting => return Err(Refusal::Conflict),
        Status::Active => {}
    }
    if session.is_owned_by(target) {
        return Err(Refusal::BadRequest("the session is already with that agent"));
    }
    let source = session.admin_id.as_ref().and_then(|owner| snapshot.agents.get(owner));
    let source = source.ok_or(Refusal::Conflict)?;
    let target = snapshot.agents.get(target).filter(|agent| agent.is_eligible());
    Ok((source, target.ok_or(Refusal::AgentUnavailable)?))
}

fn apply(
    snapshot: &Snapshot,
    session: &Session,
    (source, target): (&Agent, &Agent),
    caller: &Caller,
    request: &TransferRequest,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let moved = match session.assigned(&request.target, context.now) {
        Ok(moved) => moved,
        Err(refusal) => return Verdict::Refuse(refusal),
    };
    let record = DecisionRecord {
        id: snapshot.next_record(session.id, Some(target), ids),
        session_id: session.id,
        admin_id: Some(request.target.clone()),
        from: session.admin_id.clone(),
        candidates: vec![Candidate::from(target)],
        rule: Rule::Named,
        outcome: Outcome::Transferred,
        actor: caller.actor(),
        note: request.note.clone(),
        time: context.now,
    };
    let event = Event::SessionAssigned {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        admin_id: request.target.clone(),
        from: session.admin_id.clone(),
        how: How::Transfer,
        actor: caller.actor(),
        version: moved.version,
    };
    Verdict::Apply(Change {
        agents: vec![source.relieved(), target.loaded(record.id)],
        sessions: vec![moved],
        records: vec![record],
        events: vec![Envelope::new(event, context, ids)],
    })
}
