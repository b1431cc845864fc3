//! An agent's own transitions: online, offline, connected, vanished (Z7).

use kefu_core::{AdminId, AgentInfo, Caller, IdSource, Timestamp};
use kefu_events::{Envelope, Event, EventContext, RequeueReason};
use kefu_presence::{Agent, Availability};

use crate::requeue::requeue_all;
use crate::{Change, Snapshot, Verdict};

/// Decides `chat.agent.online`: takes sessions from now on, up to `max_sessions`.
pub(crate) fn decide_online(
    snapshot: &Snapshot,
    info: &AgentInfo,
    max_sessions: u32,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let before = known(snapshot, info, max_sessions);
    write(&before, before.online(max_sessions), context, ids)
}

/// Decides `chat.agent.offline`: no new sessions; open ones stay unless `requeue`.
pub(crate) fn decide_offline(
    snapshot: &Snapshot,
    caller: &Caller,
    info: &AgentInfo,
    requeue: bool,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let before = known(snapshot, info, kefu_core::limit::MAX_SESSIONS_PER_AGENT);
    let offline = before.offline();
    if !requeue {
        return write(&before, offline, context, ids);
    }
    let reason = RequeueReason::AgentOffline;
    let change = requeue_all(snapshot, &offline, reason, &caller.actor(), context, ids);
    change.map_or(Verdict::Stale, |change| announce(change, &before, context, ids))
}

/// Decides what a lease makes of an agent: live, with the newest name.
pub(crate) fn decide_connected(
    snapshot: &Snapshot,
    info: &AgentInfo,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let before = known(snapshot, info, kefu_core::limit::MAX_SESSIONS_PER_AGENT);
    write(&before, before.connected(info), context, ids)
}

/// Decides what the loss of the last lease makes of an agent.
pub(crate) fn decide_vanished(
    snapshot: &Snapshot,
    admin: &AdminId,
    now: Timestamp,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    snapshot.agents.get(admin).map_or(Verdict::Apply(Change::default()), |before| {
        write(before, before.vanished(now), context, ids)
    })
}

/// Decides that an agent counts as gone from now on, as after a process start (P4).
pub(crate) fn decide_gone_anew(
    snapshot: &Snapshot,
    admin: &AdminId,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    snapshot.agents.get(admin).map_or(Verdict::Apply(Change::default()), |before| {
        write(before, before.gone_anew(context.now), context, ids)
    })
}

fn known(snapshot: &Snapshot, info: &AgentInfo, max_sessions: u32) -> Agent {
    let known = snapshot.agents.get(&info.admin_id).cloned();
    known.unwrap_or_else(|| Agent::new(info.clone(), max_sessions))
}

fn write(before: &Agent, after: Agent, context: &EventContext, ids: &dyn IdSource) -> Verdict {
    if *before == after && after.live_gen > 0 {
        return Verdict::Apply(Change::default());
    }
    let change = Change { agents: vec![after], ..Change::default() };
    announce(change, before, context, ids)
}

/// Adds the event that tells colleagues and the drain, if the agent's availability, cap or liveness
/// changed.
pub(crate) fn announce(
    mut change: Change,
    before: &Agent,
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    if let Some(after) = change.agents.first() {
        let same = after.availability == before.availability
            && after.max_sessions == before.max_sessions
            && after.live == before.live;
        if !same {
            let event = Event::AgentChanged {
                admin_id: after.info.admin_id.clone(),
                online: after.availability == Availability::Online,
                live: after.live,
            };
            change.events.push(Envelope::new(event, context, ids));
        }
    }
    Verdict::Apply(change)
}
