//! The drain pass as two pure functions: a plan from unlocked reads, and the re-check under lock (Z2).

use kefu_core::{Actor, AdminId, AssignmentId, IdSource, SessionId};
use kefu_events::{Envelope, Event, EventContext, How};
use kefu_presence::Agent;
use kefu_session::{Session, Status};

use crate::policy::choose;
use crate::{Candidate, Change, DecisionRecord, Outcome, Rule, Scope, Snapshot, Verdict};

/// One intended assignment, with what was believed when it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The waiting session.
    pub session: SessionId,
    /// The chosen agent.
    pub agent: AdminId,
    /// The agent's life at that moment: a new one makes the plan void.
    pub live_gen: i64,
    /// Everybody considered, with their loads.
    pub candidates: Vec<Candidate>,
}

impl Pair {
    /// The chosen agent's load when the plan chose it.
    fn planned_load(&self) -> u32 {
        let chosen = self.candidates.iter().find(|candidate| candidate.admin_id == self.agent);
        chosen.map_or(0, |candidate| candidate.load)
    }
}

/// Gives each head of the line to its least-loaded eligible agent, counting what the plan itself
/// gives away. Stops at the first head for whom nobody has room.
#[must_use]
pub fn plan_pass(heads: &[Session], agents: &[Agent]) -> Vec<Pair> {
    let mut pool = agents.to_vec();
    let newest = pool.iter().filter_map(|a| a.last_assigned).max();
    let mut stand_in = newest.map_or(0, AssignmentId::get);
    let mut pairs = Vec::new();
    for head in heads {
        let Some(chosen) = choose(&pool) else { break };
        let pair = Pair {
            session: head.id,
            agent: chosen.info.admin_id.clone(),
            live_gen: chosen.live_gen,
            candidates: pool.iter().map(Candidate::from).collect(),
        };
        // Stands in for the record id that the commit will give: larger than all before.
        stand_in += 1;
        if let Ok(record) = AssignmentId::new(stand_in)
            && let Some(agent) = pool.iter_mut().find(|a| a.info.admin_id == pair.agent)
        {
            *agent = agent.loaded(record);
        }
        pairs.push(pair);
    }
    pairs
}

/// The rows that committing `pairs` needs: only chosen agents, and their sessions (Z3).
#[must_use]
pub fn scope_of(pairs: &[Pair]) -> Scope {
    Scope::new(pairs.iter().map(|pair| pair.agent.clone()), pairs.iter().map(|pair| pair.session))
}

/// Re-checks the pairs under lock and assigns those in front that still hold. From the first that does
/// not, nothing is as it was planned: who follows would overtake it (Q1), to an agent who was chosen
/// because of what it would have got (Z1). The next round of the pass plans them anew.
#[must_use]
pub fn decide_pass(
    snapshot: &Snapshot,
    pairs: &[Pair],
    context: &EventContext,
    ids: &dyn IdSource,
) -> Verdict {
    let mut change = Change::default();
    for pair in pairs {
        let Some(session) = snapshot.sessions.get(&pair.session) else { break };
        let Some(agent) = current(snapshot, &change, &pair.agent) else { break };
        let holds = session.status == Status::Waiting
            && agent.is_eligible()
            && agent.live_gen == pair.live_gen
            // Busier than planned: a claim, a transfer or another node came first, and somebody else
            // may be the least loaded now (Z1).
            && agent.active_sessions <= pair.planned_load();
        if !holds {
            break;
        }
        let id = snapshot.next_record(session.id, Some(&agent), ids);
        give(&mut change, session, &agent, pair, (id, context, ids));
    }
    Verdict::Apply(change)
}

/// The agent's row as this change would leave it.
fn current(snapshot: &Snapshot, change: &Change, admin: &AdminId) -> Option<Agent> {
    let changed = change.agents.iter().find(|agent| agent.info.admin_id == *admin);
    changed.or_else(|| snapshot.agents.get(admin)).cloned()
}

fn give(
    change: &mut Change,
    session: &Session,
    agent: &Agent,
    pair: &Pair,
    (id, context, ids): (AssignmentId, &EventContext, &dyn IdSource),
) {
    let Ok(assigned) = session.assigned(&pair.agent, context.now) else { return };
    let record = DecisionRecord {
        id,
        session_id: session.id,
        admin_id: Some(pair.agent.clone()),
        from: None,
        candidates: pair.candidates.clone(),
        rule: Rule::LeastLoad,
        outcome: Outcome::Assigned,
        actor: Actor::System,
        note: None,
        time: context.now,
    };
    let event = Event::SessionAssigned {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        admin_id: pair.agent.clone(),
        from: None,
        how: How::Drain,
        actor: Actor::System,
        version: assigned.version,
    };
    change.put_agent(agent.loaded(record.id));
    change.sessions.push(assigned);
    change.records.push(record);
    change.events.push(Envelope::new(event, context, ids));
}
