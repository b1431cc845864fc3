//! Requeue: an agent's open sessions go back to the line (Z7).

use kefu_core::{Actor, AdminId, AssignmentId, IdSource};
use kefu_events::{Envelope, Event, EventContext, RequeueReason};
use kefu_presence::Agent;
use kefu_session::Session;

use crate::{Change, DecisionRecord, Outcome, Rule, Snapshot, Verdict};

/// Puts every session of `agent` in the snapshot back in the line, into `change`.
///
/// `None` when the snapshot does not hold all of the agent's sessions: the scope is stale.
pub(crate) fn requeue_all(
    snapshot: &Snapshot,
    agent: &Agent,
    reason: RequeueReason,
    actor: &Actor,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Option<Change> {
    let admin = &agent.info.admin_id;
    let owned: Vec<_> = snapshot.sessions.values().filter(|s| s.is_owned_by(admin)).collect();
    if owned.len() != agent.active_sessions as usize {
        return None;
    }
    let mut change = Change::default();
    let mut left = agent.clone();
    for session in owned {
        let requeued = session.requeued().ok()?;
        left = left.relieved();
        let id = snapshot.next_record(session.id, None, ids);
        change.records.push(record(id, &requeued, admin, reason, actor, context));
        change.events.push(event(&requeued, admin, reason, context, ids));
        change.sessions.push(requeued);
    }
    change.agents.push(left);
    Some(change)
}

fn record(
    id: AssignmentId,
    session: &Session,
    from: &AdminId,
    reason: RequeueReason,
    actor: &Actor,
    context: &EventContext,
) -> DecisionRecord {
    DecisionRecord {
        id,
        session_id: session.id,
        admin_id: None,
        from: Some(from.clone()),
        candidates: Vec::new(),
        rule: Rule::None,
        outcome: Outcome::Requeued(reason),
        actor: actor.clone(),
        note: None,
        time: context.now,
    }
}

fn event(
    session: &Session,
    from: &AdminId,
    reason: RequeueReason,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Envelope {
    let event = Event::SessionRequeued {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        from: from.clone(),
        reason,
        version: session.version,
    };
    Envelope::new(event, context, ids)
}

/// Decides what becomes of an agent who was gone too long: offline by `system`, sessions back in
/// line (Z7). An agent who came back meanwhile is left alone.
pub(crate) fn decide_gone(
    snapshot: &Snapshot,
    admin: &AdminId,
    gone_before: kefu_core::Timestamp,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let gone = snapshot
        .agents
        .get(admin)
        .filter(|agent| !agent.live && agent.gone_since.is_some_and(|since| since <= gone_before));
    let Some(agent) = gone else { return Verdict::Apply(Change::default()) };
    let reason = RequeueReason::AgentGone;
    let offline = agent.offline();
    let change = requeue_all(snapshot, &offline, reason, &Actor::System, context, ids);
    change.map_or(Verdict::Stale, |change| crate::agent::announce(change, agent, context, ids))
}
