//! Assignments with one mistake (2.3).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kefu_assignment::{AssignmentDecision, AssignmentStore, Change, Scope, Snapshot, Verdict};
use kefu_core::snowflake::EPOCH_MS;
use kefu_core::{Clock, IdSource, ManualClock, StoreFault};
use kefu_desk::Stores;
use kefu_events::Bus;
use kefu_presence::Availability;
use kefu_testkit::{Gate, Slow, World};

use crate::backend::Backend;
use crate::nodes::Nodes;
use crate::passing::{Altered, PassingAssignments};

/// What goes wrong on a change of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentMistake {
    /// Nothing: shows that it is the mistake that is caught, not the wrapper.
    Nothing,
    /// It decides on what it read before the lock (Z2).
    DecidesOutsideLock,
    /// Whether the agent still takes sessions is not looked at again (Z2).
    TrustsAvailability,
    /// Whether the session still waits is not looked at again (Q3).
    TrustsWaiting,
    /// The session is written, the agent's load is not.
    LosesLoad,
    /// The load is written, the session is not.
    LosesSession,
    /// The decision record is not written.
    LosesRecord,
}

/// An assignment store whose writes wait at a gate, and that makes one mistake.
struct CarelessAssignments {
    real: Arc<dyn AssignmentStore>,
    gated: Slow<dyn AssignmentStore>,
    mistake: AssignmentMistake,
}

/// A world whose assignments wait at a gate between choice and write, and what happens meanwhile.
pub struct Assigning {
    /// Makes the mistake, behind the gate.
    pub world: World,
    /// The same rows without mistake and gate. Gives out ids of its own.
    pub backstage: World,
    /// Held between what is read unlocked and the transaction.
    pub gate: Gate,
}

impl Assigning {
    /// On a backend of its own.
    pub async fn start<B: Backend>(mistake: AssignmentMistake) -> (B, Self) {
        let backend = B::start().await;
        let (stores, gate) = (backend.stores(), Gate::new());
        let clock = Arc::new(ManualClock::default());
        // Both worlds are worker 0: an hour keeps their ids apart.
        let later = (clock.now().0 - EPOCH_MS + 3_600_000) << 22;
        let backstage = World::with(stores.clone(), Arc::clone(&clock), later, Bus::silent());
        let world = World::with(careless(stores, &gate, mistake), clock, 0, Bus::silent());
        (backend, Self { world, backstage, gate })
    }

    /// Of two nodes: the first assigns, behind the gate; on the second happens what happens meanwhile.
    pub async fn on_two_nodes(mistake: AssignmentMistake) -> (Nodes, Self) {
        let gate = Gate::new();
        let nodes =
            Nodes::broken(
                2,
                |number, stores, _| {
                    if number == 0 { careless(stores, &gate, mistake) } else { stores }
                },
            );
        let nodes = nodes.await;
        let (world, backstage) = (nodes.at(0).world.clone(), nodes.at(1).world.clone());
        (nodes, Self { world, backstage, gate })
    }
}

fn careless(stores: Stores, gate: &Gate, mistake: AssignmentMistake) -> Stores {
    let real = Arc::clone(&stores.assignments);
    let gated = Slow::new(Arc::clone(&real), gate.clone());
    let assignments = Arc::new(Altered(CarelessAssignments { real, gated, mistake }));
    Stores { assignments, ..stores }
}

impl CarelessAssignments {
    async fn look(&self, scope: &Scope, ids: &dyn IdSource) -> Result<Snapshot, StoreFault> {
        let seen = Mutex::new(Snapshot::default());
        let look = |snapshot: &Snapshot, _: &dyn IdSource| {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = snapshot.clone();
            Verdict::Stale
        };
        self.real.transact(scope, &look, ids).await?;
        Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the rules are shown, and what of their verdict is written.
fn spoilt(
    mistake: AssignmentMistake,
    before: &Snapshot,
    snapshot: &Snapshot,
    decide: AssignmentDecision<'_>,
    ids: &dyn IdSource,
) -> Verdict {
    let mut shown = snapshot.clone();
    match mistake {
        AssignmentMistake::DecidesOutsideLock => shown = before.clone(),
        AssignmentMistake::TrustsAvailability => {
            for agent in shown.agents.values_mut() {
                agent.availability = Availability::Online;
                agent.live = true;
            }
        }
        AssignmentMistake::TrustsWaiting => shown.sessions.clone_from(&before.sessions),
        AssignmentMistake::Nothing
        | AssignmentMistake::LosesLoad
        | AssignmentMistake::LosesSession
        | AssignmentMistake::LosesRecord => {}
    }
    let mut verdict = decide(&shown, ids);
    if let Verdict::Apply(change) = &mut verdict {
        lose(mistake, change);
    }
    verdict
}

/// Of what moves a session; an agent who comes or goes is written.
fn lose(mistake: AssignmentMistake, change: &mut Change) {
    match mistake {
        AssignmentMistake::LosesLoad if change.sessions.is_empty() => {}
        AssignmentMistake::LosesLoad => change.agents.clear(),
        AssignmentMistake::LosesSession => change.sessions.clear(),
        AssignmentMistake::LosesRecord => change.records.clear(),
        AssignmentMistake::Nothing
        | AssignmentMistake::DecidesOutsideLock
        | AssignmentMistake::TrustsAvailability
        | AssignmentMistake::TrustsWaiting => {}
    }
}

#[async_trait]
impl PassingAssignments for CarelessAssignments {
    fn inner(&self) -> &dyn AssignmentStore {
        self.real.as_ref()
    }

    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        let before = self.look(scope, ids).await?;
        let spoilt = |snapshot: &Snapshot, ids: &dyn IdSource| {
            spoilt(self.mistake, &before, snapshot, decide, ids)
        };
        self.gated.transact(scope, &spoilt, ids).await
    }
}
