//! The use cases around a load, for gateways and embedders: claim, transfer, end, availability.

use std::sync::Arc;

use kefu_core::{
    AdminId, AgentInfo, Caller, ConnId, ErrorCode, SessionId, StoreFault, Timestamp, TraceId,
};
use kefu_events::EventSource;
use kefu_presence::{Agent, AgentDirectory};
use kefu_session::{Access, Refusal, Session, SessionStore, role_allows};

use crate::agent::{
    decide_connected, decide_gone_anew, decide_offline, decide_online, decide_vanished,
};
use crate::claim::decide_claim;
use crate::end::decide_end;
use crate::requeue::decide_gone;
use crate::transfer::{TransferRequest, decide_transfer};
use crate::{AssignmentDecision, AssignmentStore, Change, Scope, Verdict};

/// Fresh starts before a use case gives up on a session whose owner keeps changing.
const STARTS: u32 = 16;

/// Why a use case failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

impl AssignmentError {
    /// The code a client sees.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Store(fault) => fault.code(),
        }
    }
}

/// The connection whose frame caused a change, attached to its events: it gets the direct answer,
/// the person's other connections get the push.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin(pub Option<ConnId>);

/// Every change of a load that a person or the sweeper asks for.
pub struct Assignments {
    store: Arc<dyn AssignmentStore>,
    agents: Arc<dyn AgentDirectory>,
    sessions: Arc<dyn SessionStore>,
    source: EventSource,
    max_sessions: u32,
}

impl Assignments {
    /// `max_sessions` is the largest cap an agent may choose (CC-03, Z1).
    #[must_use]
    pub fn new(
        store: Arc<dyn AssignmentStore>,
        agents: Arc<dyn AgentDirectory>,
        sessions: Arc<dyn SessionStore>,
        source: EventSource,
        max_sessions: u32,
    ) -> Self {
        Self { store, agents, sessions, source, max_sessions }
    }

    /// Takes a waiting session (Z6). Returns it in the claimant's hands.
    ///
    /// # Errors
    /// `conflict` when it no longer waits, `session_closed` after its end, `agent_unavailable` when
    /// the claimant is offline or full, `forbidden` unless the caller is an agent.
    pub async fn claim(
        &self,
        caller: &Caller,
        session: SessionId,
        origin: Origin,
        trace: TraceId,
    ) -> Result<Session, AssignmentError> {
        let Caller::Agent(info) = caller else { return Err(Refusal::Forbidden.into()) };
        let context = self.source.context(trace);
        let scope = Scope::new([info.admin_id.clone()], [session]);
        let change = self
            .apply(
                &scope,
                &|snapshot, ids| decide_claim(snapshot, session, info, &context, ids),
                origin,
            )
            .await?;
        change.sessions.into_iter().next().ok_or_else(|| Refusal::Conflict.into())
    }

    /// Hands a session to `target` (Z5). The same transfer again is a success without effect (S4).
    ///
    /// # Errors
    /// In this order: `not_found`, `session_closed`, `conflict` while it waits, `bad_request` when it
    /// is already there, `agent_unavailable`.
    pub async fn transfer(
        &self,
        caller: &Caller,
        session: SessionId,
        target: &AdminId,
        note: Option<String>,
        origin: Origin,
        trace: TraceId,
    ) -> Result<(), AssignmentError> {
        role_allows(caller, Access::Transfer)?;
        let context = self.source.context(trace);
        for _ in 0..STARTS {
            let owner = self.owner_of(session).await?;
            let scope = Scope::new(owner.iter().cloned().chain([target.clone()]), [session]);
            let request = TransferRequest {
                session,
                target: target.clone(),
                note: note.clone(),
                expected_owner: owner,
            };
            let decision = self
                .attempt(
                    &scope,
                    &|snapshot, ids| decide_transfer(snapshot, caller, &request, &context, ids),
                    origin,
                )
                .await?;
            if decision.is_some() {
                return Ok(());
            }
        }
        Err(Refusal::Conflict.into())
    }

    /// Ends a session; ending it again gives the same answer without effect (S4).
    ///
    /// # Errors
    /// `not_found` when the caller may not end it.
    pub async fn end(
        &self,
        caller: &Caller,
        session: SessionId,
        origin: Origin,
        trace: TraceId,
    ) -> Result<Session, AssignmentError> {
        let context = self.source.context(trace);
        for _ in 0..STARTS {
            let owner = self.owner_of(session).await?;
            let scope = Scope::new(owner.clone(), [session]);
            let decision = self
                .attempt(
                    &scope,
                    &|snapshot, ids| {
                        decide_end(snapshot, session, owner.as_ref(), caller, &context, ids)
                    },
                    origin,
                )
                .await?;
            match decision.map(|change| change.sessions.into_iter().next()) {
                Some(Some(ended)) => return Ok(ended),
                Some(None) => return self.read(session).await,
                None => {}
            }
        }
        Err(Refusal::Conflict.into())
    }

    /// Takes new sessions from now on, at most `max_sessions` at a time.
    ///
    /// # Errors
    /// `bad_request` when the cap is outside 1 … the configured maximum (Z1).
    pub async fn go_online(
        &self,
        caller: &Caller,
        max_sessions: u32,
        origin: Origin,
        trace: TraceId,
    ) -> Result<Agent, AssignmentError> {
        let Caller::Agent(info) = caller else { return Err(Refusal::Forbidden.into()) };
        if !(1..=self.max_sessions).contains(&max_sessions) {
            return Err(Refusal::BadRequest("maxSessions is out of range").into());
        }
        let context = self.source.context(trace);
        let scope = Scope::new([info.admin_id.clone()], []);
        self.apply(
            &scope,
            &|snapshot, ids| decide_online(snapshot, info, max_sessions, &context, ids),
            origin,
        )
        .await?;
        self.agent(&info.admin_id).await
    }

    /// Takes no new sessions; with `requeue` the open ones go back to the line.
    ///
    /// # Errors
    /// `forbidden` unless the caller is an agent.
    pub async fn go_offline(
        &self,
        caller: &Caller,
        requeue: bool,
        origin: Origin,
        trace: TraceId,
    ) -> Result<Agent, AssignmentError> {
        let Caller::Agent(info) = caller else { return Err(Refusal::Forbidden.into()) };
        let context = self.source.context(trace);
        for _ in 0..STARTS {
            let scope = self.scope_of_agent(&info.admin_id, requeue).await?;
            let decision = self
                .attempt(
                    &scope,
                    &|snapshot, ids| decide_offline(snapshot, caller, info, requeue, &context, ids),
                    origin,
                )
                .await?;
            if decision.is_some() {
                return self.agent(&info.admin_id).await;
            }
        }
        Err(Refusal::Conflict.into())
    }

    /// Notes that a connection of this agent holds a lease. Writes only on a transition.
    ///
    /// # Errors
    /// [`AssignmentError::Store`]; the sweeper repeats it.
    pub async fn connected(
        &self,
        info: &AgentInfo,
        trace: TraceId,
    ) -> Result<Agent, AssignmentError> {
        let context = self.source.context(trace);
        let scope = Scope::new([info.admin_id.clone()], []);
        self.apply(
            &scope,
            &|snapshot, ids| decide_connected(snapshot, info, &context, ids),
            Origin::default(),
        )
        .await?;
        self.agent(&info.admin_id).await
    }

    /// Notes that the last lease of this agent is gone. Writes only on a transition.
    ///
    /// # Errors
    /// [`AssignmentError::Store`]; the sweeper repeats it.
    pub async fn vanished(&self, admin: &AdminId, trace: TraceId) -> Result<(), AssignmentError> {
        let context = self.source.context(trace);
        let scope = Scope::new([admin.clone()], []);
        self.apply(
            &scope,
            &|snapshot, ids| decide_vanished(snapshot, admin, context.now, &context, ids),
            Origin::default(),
        )
        .await?;
        Ok(())
    }

    /// Counts every agent as gone from now on: no connection outlived the process, and who was gone
    /// before it started had no chance to come back (P4).
    ///
    /// # Errors
    /// [`AssignmentError::Store`]; repeating it only prolongs the grace.
    pub async fn restart_grace(&self, trace: TraceId) -> Result<(), AssignmentError> {
        let context = self.source.context(trace);
        let mut agents = self.agents.list_live().await?;
        agents.extend(self.agents.list_gone(Timestamp(i64::MAX)).await?);
        for agent in agents {
            let admin = &agent.info.admin_id;
            let scope = Scope::new([admin.clone()], []);
            self.apply(
                &scope,
                &|snapshot, ids| decide_gone_anew(snapshot, admin, &context, ids),
                Origin::default(),
            )
            .await?;
        }
        Ok(())
    }

    /// Requeues the sessions of every agent gone since before `gone_before` and sets them offline
    /// (Z7). Returns how many agents that met.
    ///
    /// # Errors
    /// [`AssignmentError::Store`]; the sweeper repeats it.
    pub async fn requeue_gone(
        &self,
        gone_before: Timestamp,
        trace: TraceId,
    ) -> Result<usize, AssignmentError> {
        let gone = self.agents.list_gone(gone_before).await?;
        let mut result = Ok(gone.len());
        for agent in &gone {
            // One agent's trouble holds up nobody else's visitors.
            let admin = &agent.info.admin_id;
            if let Err(error) = self.requeue_one(admin, gone_before, trace.clone()).await {
                result = Err(error);
            }
        }
        result
    }

    /// One agent's part of [`Self::requeue_gone`]. A scope that stays stale is left to the next sweep.
    async fn requeue_one(
        &self,
        admin: &AdminId,
        gone_before: Timestamp,
        trace: TraceId,
    ) -> Result<(), AssignmentError> {
        let context = self.source.context(trace);
        let scope = self.scope_of_agent(admin, true).await?;
        self.attempt(
            &scope,
            &|snapshot, ids| decide_gone(snapshot, admin, gone_before, &context, ids),
            Origin::default(),
        )
        .await?;
        Ok(())
    }

    async fn scope_of_agent(
        &self,
        admin: &AdminId,
        with_sessions: bool,
    ) -> Result<Scope, StoreFault> {
        let owned = if with_sessions { self.sessions.list_owned(admin).await? } else { Vec::new() };
        Ok(Scope::new([admin.clone()], owned.iter().map(|session| session.id)))
    }

    async fn owner_of(&self, session: SessionId) -> Result<Option<AdminId>, AssignmentError> {
        Ok(self.read(session).await?.admin_id)
    }

    async fn read(&self, session: SessionId) -> Result<Session, AssignmentError> {
        Ok(self.sessions.find(session).await?.ok_or(Refusal::NotFound)?)
    }

    async fn agent(&self, admin: &AdminId) -> Result<Agent, AssignmentError> {
        Ok(self.agents.find(admin).await?.ok_or(Refusal::NotFound)?)
    }

    /// Runs a decision whose scope cannot be stale.
    async fn apply(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        origin: Origin,
    ) -> Result<Change, AssignmentError> {
        self.attempt(scope, decide, origin).await?.ok_or_else(|| Refusal::Conflict.into())
    }

    /// Runs a decision and publishes its events; `None` when the scope was stale.
    async fn attempt(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        origin: Origin,
    ) -> Result<Option<Change>, AssignmentError> {
        let verdict = self.store.transact(scope, decide, self.source.ids()).await;
        match verdict.inspect_err(|fault| self.source.recover(fault))? {
            Verdict::Apply(change) => {
                let origin = Arc::new(origin);
                let events = change.events.iter().cloned();
                self.source.publish(events.map(|event| event.with_attachment(Arc::clone(&origin))));
                Ok(Some(change))
            }
            Verdict::Refuse(refusal) => Err(refusal.into()),
            Verdict::Stale => Ok(None),
        }
    }
}
