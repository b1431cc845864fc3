//! The sweep: what has to happen without anybody asking (Z3, Z7, P4, U1).

use std::sync::Arc;
use std::time::Duration;

use kefu_core::{Person, TraceId};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::heal::Suspects;
use crate::{Desk, DeskError};

/// Between two looks at line and agents (Z3).
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks for silent losses (M5).
const HEAL_EVERY: Duration = Duration::from_secs(10);
/// Between two clean-ups of uploads and outbox.
const TIDY_EVERY: Duration = Duration::from_secs(600);
/// Confirmed outbox rows are kept this long for other systems to read (N2).
const OUTBOX_KEEP: Duration = Duration::from_secs(24 * 3_600);
/// Outbox rows trimmed in one statement, so that no sweep holds the writer for long.
const TRIM: u32 = 5_000;

impl Desk {
    /// Counts every agent as gone from now on: no connection outlived the process (P4). To be called
    /// once, before the first connection.
    ///
    /// # Errors
    /// Store faults.
    pub async fn start_up(&self, trace: &TraceId) -> Result<(), DeskError> {
        Ok(self.assignments.restart_grace(trace.clone()).await?)
    }

    /// Starts the sweeps of this process on `tracker`, until `stop`.
    pub fn start_sweeps(
        self: &Arc<Self>,
        trace: &TraceId,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) {
        tracker.spawn(Arc::clone(self).sweep_line(trace.clone(), stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_losses(stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_leftovers(stop.clone()));
    }

    async fn sweep_line(self: Arc<Self>, trace: TraceId, stop: CancellationToken) {
        // Nobody is judged before everybody had the time to come back (P4).
        let first = Instant::now() + self.config.presence_ttl;
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while tick(&mut ticks, &stop).await {
            // Each part for itself: without leases assignment still goes on (N5).
            held_up(self.look_at_agents(&trace, Instant::now() >= first).await);
            held_up(self.drain.run().await);
        }
    }

    async fn look_at_agents(&self, trace: &TraceId, may_judge: bool) -> Result<(), DeskError> {
        self.restate_gone(trace).await?;
        if may_judge {
            self.judge_liveness(trace).await?;
        }
        if !self.config.agent_grace.is_zero() {
            let gone_before = self.source.clock().now().before(self.config.agent_grace);
            self.assignments.requeue_gone(gone_before, trace.clone()).await?;
        }
        Ok(())
    }

    /// Agents marked gone who hold a lease are there: a mark that came late, or was not taken back.
    async fn restate_gone(&self, trace: &TraceId) -> Result<(), DeskError> {
        for agent in self.stores.agents.list_gone(self.source.clock().now()).await? {
            self.restate_liveness(&agent.info, trace).await;
        }
        Ok(())
    }

    /// Agents marked live whose last lease ran out without a word are gone (P4).
    async fn judge_liveness(&self, trace: &TraceId) -> Result<(), DeskError> {
        for agent in self.stores.agents.list_live().await? {
            let person = Person::Agent(agent.info.admin_id.clone());
            if self.coordination.presence.count(&person).await? == 0 {
                self.assignments.vanished(&agent.info.admin_id, trace.clone()).await?;
                // A lease taken between the count and the mark is honoured (Z7).
                if self.coordination.presence.count(&person).await? > 0 {
                    self.assignments.connected(&agent.info, trace.clone()).await?;
                }
            }
        }
        Ok(())
    }

    async fn sweep_losses(self: Arc<Self>, stop: CancellationToken) {
        let mut suspects = Suspects::default();
        let mut ticks = tokio::time::interval(HEAL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while tick(&mut ticks, &stop).await {
            if let Err(fault) = self.heal(&mut suspects).await {
                tracing::warn!(%fault, "healing is held up");
            }
        }
    }

    async fn sweep_leftovers(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(TIDY_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while tick(&mut ticks, &stop).await {
            if let Err(error) = self.uploads.sweep().await {
                tracing::warn!(%error, "upload clean-up is held up");
            }
            let keep = self.source.clock().now().before(OUTBOX_KEEP);
            if let Err(fault) = self.stores.outbox.trim(keep, TRIM).await {
                tracing::warn!(%fault, "outbox trim is held up");
            }
        }
    }
}

fn held_up<T>(part: Result<T, impl std::fmt::Display>) {
    if let Err(error) = part {
        tracing::warn!(%error, "sweep is held up");
    }
}

/// Waits for the next tick; `false` when it is time to stop.
async fn tick(ticks: &mut tokio::time::Interval, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => false,
        _ = ticks.tick() => true,
    }
}
