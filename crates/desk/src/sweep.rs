//! The sweep: what has to happen without anybody asking (Z3, Z7, P4, U1, N2, A1).

use std::sync::Arc;
use std::time::Duration;

use kefu_core::{Person, StoreFault, Timestamp, TraceId};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::heal::Suspects;
use crate::loss::{Look, Losses};
use crate::{Desk, DeskError, Task};

/// Between two looks at line and agents (Z3), and at what other nodes left unsaid (N2).
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks for silent losses (M5).
const HEAL_EVERY: Duration = Duration::from_secs(10);
/// Between two clean-ups of uploads and outbox.
const TIDY_EVERY: Duration = Duration::from_secs(600);
/// Between two looks whether the copies were lost. A look is one small question, and the time to the next
/// one is most of what a rebuild waits for.
const COPIES_LOOK: Duration = Duration::from_millis(200);
/// Between two comparisons of all copies with their rows (A1).
const RECONCILE_EVERY: Duration = Duration::from_secs(60);
/// Between two looks at what is shown of this process and the outbox.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Waiting events counted; beyond it the number says no more.
const COUNTED: u32 = 10_000;
/// Outbox rows trimmed in one statement, so that no sweep holds the writer for long.
const TRIM: u32 = 5_000;
/// How old an event is before another process says it (N2): its own node is done by then, or gone.
const STRAY_AFTER: Duration = Duration::from_secs(2);
/// Events of other processes read at a time.
const STRAYS: u32 = 256;
/// How long a task stays with its process after the last sign of life: a few of its own ticks, so that
/// another one takes over soon.
const TASK_TTL: Duration = Duration::from_secs(5);

impl Desk {
    /// Counts every agent as gone from now on: no connection outlived the process (P4). To be called
    /// once, before the first connection, and only by a process that is the only one.
    ///
    /// # Errors
    /// Store faults.
    pub async fn start_up(&self, trace: &TraceId) -> Result<(), DeskError> {
        Ok(self.assignments.restart_grace(trace.clone()).await?)
    }

    /// Starts what every process does for the people connected to it, until `stop`.
    pub fn start_node(self: &Arc<Self>, tracker: &TaskTracker, stop: &CancellationToken) {
        tracker.spawn(Arc::clone(self).sweep_losses(stop.clone()));
        if self.cluster.is_some() {
            tracker.spawn(Arc::clone(self).listen(stop.clone()));
            tracker.spawn(Arc::clone(self).keep_leases(stop.clone()));
            tracker.spawn(Arc::clone(self).keep_watched(stop.clone()));
        }
    }

    /// Starts what one process does for all, until `stop`: any number may start it, the task leases
    /// keep them out of each other's way.
    pub fn start_sweeps(
        self: &Arc<Self>,
        trace: &TraceId,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) {
        tracker.spawn(Arc::clone(self).watch(stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_line(stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_agents(trace.clone(), stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_leftovers(stop.clone()));
        tracker.spawn(Arc::clone(self).sweep_index(stop.clone()));
        if self.cluster.is_some() {
            tracker.spawn(Arc::clone(self).sweep_strays(stop.clone()));
            tracker.spawn(Arc::clone(self).sweep_copies(stop.clone()));
        }
    }

    /// Whether this process does `task` now. A process that is the only one always does.
    pub(crate) async fn has(&self, task: Task, ttl: Duration) -> bool {
        let Some(cluster) = &self.cluster else { return true };
        let asked = Instant::now();
        let held = match cluster.tasks.hold(task, self.source.node(), ttl).await {
            Ok(epoch) => epoch.is_some(),
            Err(fault) => {
                tracing::warn!(task = task.as_str(), %fault, "task is held up");
                false
            }
        };
        self.held.note(task, asked, held.then_some(ttl));
        held
    }

    /// Gives this process's tasks to the next one at once, when it ends.
    pub async fn leave_tasks(&self) {
        let Some(cluster) = &self.cluster else { return };
        for task in Task::ALL {
            // What is not given back expires.
            let _ = cluster.tasks.release(task, self.source.node()).await;
        }
        self.held.forget_all();
    }

    /// Shows what waits to be told, and which tasks are here: a number that only its own work would
    /// refresh says nothing when that work hangs.
    async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(WATCH_EVERY);
        while tick(&mut ticks, &stop).await {
            if self.cluster.is_some() {
                self.held.show();
            }
            // By one process, so that the sum over all is the truth.
            let (count, age) = match self.has(Task::Relay, TASK_TTL).await {
                true => self.unconfirmed().await.unwrap_or_default(),
                false => (0, Duration::ZERO),
            };
            metrics::gauge!("kefu_outbox_unconfirmed").set(f64::from(count));
            metrics::gauge!("kefu_outbox_unconfirmed_age_seconds").set(age.as_secs_f64());
        }
    }

    /// How many events wait to be told, and for how long the oldest one has (N2).
    async fn unconfirmed(&self) -> Result<(u32, Duration), StoreFault> {
        let outbox = &self.stores.outbox;
        let oldest = outbox.list_unconfirmed(Timestamp(i64::MAX), None, 1).await?;
        let now = self.source.clock().now();
        let age = oldest.first().map_or(Duration::ZERO, |oldest| now.since(oldest.time));
        Ok((outbox.count_unconfirmed(COUNTED).await?, age))
    }

    async fn sweep_line(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(EVERY);
        while tick(&mut ticks, &stop).await {
            if self.has(Task::DrainSweep, TASK_TTL).await {
                held_up(self.drain.run().await);
            }
        }
    }

    async fn sweep_agents(self: Arc<Self>, trace: TraceId, stop: CancellationToken) {
        let mut ticks = every(EVERY);
        while tick(&mut ticks, &stop).await {
            if self.has(Task::Liveness, TASK_TTL).await {
                held_up(self.look_at_agents(&trace).await);
            }
        }
    }

    /// Without leases nobody is judged; assignment still goes on (N5).
    async fn look_at_agents(&self, trace: &TraceId) -> Result<(), DeskError> {
        self.restate_gone(trace).await?;
        // Nobody is judged before everybody had the time to come back (P4).
        if self.coordination.presence.age().await? < self.config.presence_ttl {
            return Ok(());
        }
        self.judge_liveness(trace).await?;
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
        let mut ticks = every(HEAL_EVERY);
        while tick(&mut ticks, &stop).await {
            if let Err(fault) = self.heal(&mut suspects).await {
                tracing::warn!(%fault, "healing is held up");
            }
        }
    }

    async fn sweep_leftovers(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(TIDY_EVERY);
        while tick(&mut ticks, &stop).await {
            if self.has(Task::UploadCleanup, TIDY_EVERY).await
                && let Err(error) = self.uploads.sweep().await
            {
                tracing::warn!(%error, "upload clean-up is held up");
            }
            if self.has(Task::OutboxTrim, TIDY_EVERY).await {
                let keep = self.source.clock().now().before(self.config.outbox_keep);
                held_up(self.stores.outbox.trim(keep, TRIM).await);
            }
        }
    }

    /// Says what its own node could not: it was lost, or its commit's answer was (N2).
    async fn sweep_strays(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(EVERY);
        while tick(&mut ticks, &stop).await {
            if self.has(Task::Relay, TASK_TTL).await {
                held_up(self.relay_strays().await);
            }
        }
    }

    /// In id order, so in order per key. Nothing is locked meanwhile; a row that two processes say is
    /// heard once (N2).
    async fn relay_strays(&self) -> Result<(), DeskError> {
        let Some(forward) = &self.forward else { return Ok(()) };
        let before = self.source.clock().now().before(STRAY_AFTER);
        let mut after = None;
        loop {
            let rows = self.stores.outbox.list_unconfirmed(before, after, STRAYS).await?;
            let mut said = Vec::with_capacity(rows.len());
            let mut outcome = Ok(());
            for envelope in &rows {
                if let Some(copies) = &self.copies {
                    copies.note(&envelope.event);
                }
                // What cannot be said stays, and what comes after it does not overtake it.
                outcome = forward.say(envelope).await;
                if outcome.is_err() {
                    break;
                }
                said.push(envelope.id);
            }
            self.stores.outbox.confirm(&said, self.source.clock().now()).await?;
            metrics::counter!("kefu_strays_relayed_total").increment(said.len() as u64);
            outcome?;
            let full = rows.len() == STRAYS as usize;
            let Some(last) = rows.last().filter(|_| full) else { return Ok(()) };
            after = Some(last.id);
        }
    }

    /// Compares copies with rows now and then, and rebuilds them as soon as they were lost (A1).
    async fn sweep_copies(self: Arc<Self>, stop: CancellationToken) {
        let Some(copies) = &self.copies else { return };
        let (mut ticks, mut losses) = (every(COPIES_LOOK), Losses::default());
        let (mut is_ours, mut asked) = (false, None::<Instant>);
        let mut due = Instant::now();
        while tick(&mut ticks, &stop).await {
            let presence = self.coordination.presence.as_ref();
            let look = losses.look(presence, self.source.clock().as_ref()).await;
            if look == Look::Lost {
                due = Instant::now();
            }
            // Held between two comparisons too, else every process would make its own; asked no more
            // often than the other tasks.
            if look == Look::Lost || asked.is_none_or(|asked| asked.elapsed() >= EVERY) {
                is_ours = self.has(Task::Reconcile, TASK_TTL).await;
                asked = Some(Instant::now());
            }
            if !is_ours || look == Look::Away || due > Instant::now() {
                continue;
            }
            due = match copies.reconcile().await {
                Ok(()) => Instant::now() + RECONCILE_EVERY,
                Err(fault) => {
                    tracing::warn!(%fault, "reconciling is held up");
                    // A back-off: rows that cannot be read announce nothing either.
                    Instant::now() + EVERY
                }
            };
        }
    }
}

fn held_up<T>(part: Result<T, impl std::fmt::Display>) {
    if let Err(error) = part {
        tracing::warn!(%error, "sweep is held up");
    }
}

/// Ticks at once and then every `period`, however long the work between two of them takes.
pub(crate) fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits for the next tick; `false` when it is time to stop.
pub(crate) async fn tick(ticks: &mut tokio::time::Interval, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => false,
        _ = ticks.tick() => true,
    }
}
