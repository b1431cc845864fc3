//! An agent's availability (Z7).

use kefu_assignment::Origin;
use kefu_core::{Caller, TraceId};
use kefu_presence::Agent;

use crate::{Desk, DeskError};

impl Desk {
    /// Takes new sessions from now on.
    ///
    /// # Errors
    /// `forbidden` unless an agent, `bad_request` for a cap out of range (Z1).
    pub async fn agent_online(
        &self,
        caller: &Caller,
        max_sessions: u32,
        origin: Origin,
        trace: &TraceId,
    ) -> Result<Agent, DeskError> {
        Ok(self.assignments.go_online(caller, max_sessions, origin, trace.clone()).await?)
    }

    /// Takes no new sessions; with `requeue` the open ones go back to the line.
    ///
    /// # Errors
    /// `forbidden` unless an agent.
    pub async fn agent_offline(
        &self,
        caller: &Caller,
        requeue: bool,
        origin: Origin,
        trace: &TraceId,
    ) -> Result<Agent, DeskError> {
        Ok(self.assignments.go_offline(caller, requeue, origin, trace.clone()).await?)
    }
}
