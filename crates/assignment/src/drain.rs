//! The drain: the only automatic assigner (Z2, Z3).

use std::sync::Arc;

use kefu_core::limit::DRAIN_HEADS;
use kefu_core::{StoreFault, TraceId};
use kefu_events::EventSource;
use kefu_presence::AgentDirectory;
use kefu_queue::WaitingLine;
use tracing::Instrument as _;

use crate::pass::scope_of;
use crate::turn::Turn;
use crate::{AssignmentStore, Change, Pair, Verdict, decide_pass, plan_pass};

/// Fruitless rounds before a pass gives up: each means that somebody else changed the very rows
/// between the read and the lock. The sweeper comes back within a second (Z3).
const FRUITLESS_ROUNDS: u32 = 8;

/// Gives waiting sessions to agents, one pass at a time per line: in this process by its own turn, between
/// processes by [`AssignmentStore::transact_in_turn`].
pub struct Drain {
    line: Arc<dyn WaitingLine>,
    agents: Arc<dyn AgentDirectory>,
    store: Arc<dyn AssignmentStore>,
    source: EventSource,
    trace: TraceId,
    turn: Turn,
}

impl Drain {
    /// A drain over the given ports. `trace` ties together in logs and events what no frame causes.
    #[must_use]
    pub fn new(
        line: Arc<dyn WaitingLine>,
        agents: Arc<dyn AgentDirectory>,
        store: Arc<dyn AssignmentStore>,
        source: EventSource,
        trace: TraceId,
    ) -> Self {
        Self { line, agents, store, source, trace, turn: Turn::default() }
    }

    /// Makes sure that a pass starts after this call began. Returns how many sessions this caller
    /// assigned: 0 when another caller passes, who then goes round again.
    ///
    /// # Errors
    /// [`StoreFault`]; what was assigned before stays assigned.
    pub async fn run(&self) -> Result<usize, StoreFault> {
        self.run_for(&self.trace).await
    }

    /// As [`Self::run`], because of the frame `trace`: what this caller assigns carries it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_for(&self, trace: &TraceId) -> Result<usize, StoreFault> {
        let span = tracing::info_span!("drain", trace_id = %trace);
        self.turn.run(|| self.pass(trace)).instrument(span).await
    }

    /// Rounds until nobody waits, nobody has room, or others keep interfering.
    async fn pass(&self, trace: &TraceId) -> Result<usize, StoreFault> {
        let mut assigned = 0;
        let mut fruitless = 0;
        while fruitless < FRUITLESS_ROUNDS {
            // Nobody who is not chosen is read beyond what a pass can choose: of the agents in order
            // of preference, the 65th can only be reached by a 65th head.
            let line = self.line.front(DRAIN_HEADS).await?;
            if line.sessions.is_empty() {
                break;
            }
            let agents = self.agents.list_eligible(DRAIN_HEADS).await?;
            let pairs = plan_pass(&line.sessions, &agents);
            if pairs.is_empty() {
                break;
            }
            match self.commit(&pairs, trace).await? {
                // Another process passes. It reads the line again after its commit, and finds there
                // whatever this call was made for.
                None => break,
                Some(0) => fruitless += 1,
                Some(given) => {
                    fruitless = 0;
                    assigned += given;
                }
            }
        }
        Ok(assigned)
    }

    /// How many of the pairs still held; `None` when it is another process's turn.
    async fn commit(&self, pairs: &[Pair], trace: &TraceId) -> Result<Option<usize>, StoreFault> {
        let context = self.source.context(trace.clone());
        let verdict = self
            .store
            .transact_in_turn(
                &scope_of(pairs),
                &|snapshot, ids| decide_pass(snapshot, pairs, &context, ids),
                self.source.ids(),
            )
            .await
            .inspect_err(|fault| self.source.recover(fault))?;
        let Some(verdict) = verdict else { return Ok(None) };
        let Verdict::Apply(Change { sessions, events, .. }) = verdict else { return Ok(Some(0)) };
        metrics::counter!("kefu_assigned_total").increment(sessions.len() as u64);
        self.source.publish(events);
        Ok(Some(sessions.len()))
    }
}
