//! End: terminal, idempotent, the load given back once (S2, S4).

use kefu_core::{AdminId, Caller, IdSource, SessionId};
use kefu_events::{Envelope, Event, EventContext};
use kefu_session::{Access, Refusal, Session, access};

use crate::{Change, DecisionRecord, Outcome, Rule, Snapshot, Verdict};

/// Decides an end. `expected_owner` is the owner when the scope was built.
#[must_use]
pub(crate) fn decide_end(
    snapshot: &Snapshot,
    session: SessionId,
    expected_owner: Option<&AdminId>,
    caller: &Caller,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let Some(session) = snapshot.sessions.get(&session) else {
        return Verdict::Refuse(Refusal::NotFound);
    };
    if let Err(refusal) = access(session, caller, Access::End, false) {
        return Verdict::Refuse(refusal);
    }
    if !session.is_open() {
        return Verdict::Apply(Change::default());
    }
    if session.admin_id.as_ref() != expected_owner {
        return Verdict::Stale;
    }
    match session.ended(&caller.actor(), context.now) {
        Ok(ended) => apply(snapshot, ended, caller, context, ids),
        Err(refusal) => Verdict::Refuse(refusal),
    }
}

fn apply(
    snapshot: &Snapshot,
    ended: Session,
    caller: &Caller,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let owner = ended.admin_id.as_ref().and_then(|admin| snapshot.agents.get(admin));
    let record = DecisionRecord {
        id: snapshot.next_record(ended.id, None, ids),
        session_id: ended.id,
        admin_id: ended.admin_id.clone(),
        from: ended.admin_id.clone(),
        candidates: Vec::new(),
        rule: Rule::None,
        outcome: Outcome::Ended,
        actor: caller.actor(),
        note: None,
        time: context.now,
    };
    let event = Event::SessionEnded {
        session_id: ended.id,
        user_id: ended.user.user_id.clone(),
        admin_id: ended.admin_id.clone(),
        ended_by: caller.actor(),
        version: ended.version,
    };
    Verdict::Apply(Change {
        agents: owner.map(kefu_presence::Agent::relieved).into_iter().collect(),
        sessions: vec![ended],
        records: vec![record],
        events: vec![Envelope::new(event, context, ids)],
    })
}
