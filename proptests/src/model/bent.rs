//! Stores whose decisions see, or write, something else than they should: one broken rule each.

use std::sync::Arc;

use async_trait::async_trait;
use kefu_assignment::{AssignmentDecision, AssignmentStore, Scope, Snapshot, Verdict};
use kefu_core::{IdSource, Page, PageLimit, SessionId, StoreFault, UserId};
use kefu_desk::Stores;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendVerdict, Message, MessageStatus,
    MessageStore, ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict, Sender, Window,
};
use kefu_presence::{Agent, AgentDirectory};
use kefu_queue::{Line, WaitingLine};
use kefu_session::{
    OpenDecision, OpenVerdict, Opened, Refusal, Session, SessionDecision, SessionStore,
    SessionVerdict, Status, Updated,
};

use kefu_testkit::build;

use super::Break;
use crate::passing::{
    Altered, PassingAgents, PassingAssignments, PassingLine, PassingMessages, PassingSessions,
};

/// `stores` with that rule broken.
pub(super) fn bent(stores: Stores, broken: Option<Break>) -> Stores {
    let Some(broken) = broken else { return stores };
    let bent = Arc::new(Altered(Bent { inner: stores.clone(), broken }));
    Stores {
        sessions: bent.clone(),
        agents: bent.clone(),
        assignments: bent.clone(),
        line: bent.clone(),
        messages: bent,
        ..stores
    }
}

struct Bent {
    inner: Stores,
    broken: Break,
}

impl Bent {
    fn decide(
        &self,
        snapshot: &Snapshot,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Verdict {
        let mut seen = snapshot.clone();
        if self.broken == Break::LivenessIgnored {
            seen.agents.values_mut().for_each(|agent| agent.live = true);
        }
        let verdict = decide(&seen, ids);
        match (self.broken, &verdict) {
            (Break::EndsTwice, Verdict::Apply(change)) if change.is_empty() => {
                seen.sessions.values_mut().for_each(reopen);
            }
            (Break::CapOffByOne, Verdict::Refuse(Refusal::AgentUnavailable)) => {
                seen.agents.values_mut().for_each(|agent| agent.max_sessions += 1);
            }
            _ => return verdict,
        }
        decide(&seen, ids)
    }

    fn written(&self, snapshot: &Snapshot, verdict: Verdict) -> Verdict {
        let Verdict::Apply(mut change) = verdict else { return verdict };
        let before = |agent: &Agent| snapshot.agents.get(&agent.info.admin_id);
        let gives = !change.sessions.is_empty();
        match self.broken {
            Break::LoadKept => change.agents.retain(|agent| {
                before(agent).is_none_or(|before| agent.active_sessions >= before.active_sessions)
            }),
            Break::CapOffByOne => change.agents.iter_mut().for_each(|agent| {
                if let Some(before) = before(agent).filter(|_| gives) {
                    agent.max_sessions = before.max_sessions;
                }
            }),
            Break::RequeueLosesPlace => change
                .sessions
                .iter_mut()
                .filter(|session| session.status == Status::Waiting)
                .for_each(|session| session.priority = -(1 << 53)),
            _ => {}
        }
        Verdict::Apply(change)
    }

    fn seen_by_append(&self, snapshot: &AppendSnapshot) -> AppendSnapshot {
        let mut seen = snapshot.clone();
        match self.broken {
            Break::AnswersAfterEnd => seen.sessions.values_mut().for_each(reopen),
            Break::ForgetsKeys => seen.stored.clear(),
            _ => {}
        }
        seen
    }

    /// What is written of a send, and told to everybody.
    fn appended(&self, mut verdict: AppendVerdict) -> AppendVerdict {
        let stranger = || Sender::Agent(build::admin("stranger"));
        for message in &mut verdict.messages {
            let message = Arc::make_mut(message);
            match self.broken {
                Break::DeliveredAtOnce => message.status = MessageStatus::Delivered,
                Break::AuthorFromClient => message.sender = stranger(),
                _ => {}
            }
        }
        verdict
    }

    fn seen_by_receipts(
        &self,
        snapshot: &ReceiptSnapshot,
        batch: &[ReceiptRequest],
    ) -> ReceiptSnapshot {
        let mut seen = snapshot.clone();
        let messages = &mut seen.messages;
        match self.broken {
            Break::ReceiptsGoBack => {
                messages.values_mut().for_each(|message| message.status = MessageStatus::Pending);
            }
            Break::CumulativeNamesOne => {
                messages.retain(|id, _| batch.iter().any(|request| request.msg_id == *id));
            }
            Break::FailedIsFinal => messages
                .values_mut()
                .filter(|message| message.status == MessageStatus::Failed)
                .for_each(|message| message.status = MessageStatus::Read),
            _ => {}
        }
        seen
    }
}

fn reopen(session: &mut Session) {
    if session.admin_id.is_some() {
        session.status = Status::Active;
    }
}

#[async_trait]
impl PassingSessions for Bent {
    fn inner(&self) -> &dyn SessionStore {
        self.inner.sessions.as_ref()
    }

    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        let bent = |open: Option<&Session>, ids: &dyn IdSource| match (decide(open, ids), open) {
            (OpenVerdict::Refresh(_), Some(open)) if self.broken == Break::RefreshForgotten => {
                OpenVerdict::Keep(open.clone())
            }
            (verdict, _) => verdict,
        };
        self.inner.sessions.open(user, &bent, ids).await
    }

    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault> {
        let bent = |session: &Session, ids: &dyn IdSource| match decide(session, ids) {
            SessionVerdict::Write(..) if self.broken == Break::RefreshForgotten => {
                SessionVerdict::Keep
            }
            verdict => verdict,
        };
        self.inner.sessions.update(id, &bent, ids).await
    }
}

#[async_trait]
impl PassingAgents for Bent {
    fn inner(&self) -> &dyn AgentDirectory {
        self.inner.agents.as_ref()
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        let mut agents = self.inner.agents.list_eligible(limit).await?;
        if self.broken == Break::TiesById {
            agents.iter_mut().for_each(|agent| agent.last_assigned = None);
        }
        Ok(agents)
    }
}

#[async_trait]
impl PassingAssignments for Bent {
    fn inner(&self) -> &dyn AssignmentStore {
        self.inner.assignments.as_ref()
    }

    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        let bent = |snapshot: &Snapshot, ids: &dyn IdSource| {
            self.written(snapshot, self.decide(snapshot, decide, ids))
        };
        self.inner.assignments.transact(scope, &bent, ids).await
    }
}

#[async_trait]
impl PassingLine for Bent {
    fn inner(&self) -> &dyn WaitingLine {
        self.inner.line.as_ref()
    }

    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        let mut line = self.inner.line.front(limit).await?;
        if self.broken == Break::BalanceIgnored {
            line.sessions.sort_by_key(|session| session.id);
        }
        Ok(line)
    }
}

#[async_trait]
impl PassingMessages for Bent {
    fn inner(&self) -> &dyn MessageStore {
        self.inner.messages.as_ref()
    }

    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let bent = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
            self.appended(decide(&self.seen_by_append(snapshot), batch, ids))
        };
        self.inner.messages.append(batch, &bent, ids).await
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        let bent = |snapshot: &ReceiptSnapshot, batch: &[ReceiptRequest]| {
            decide(&self.seen_by_receipts(snapshot, batch), batch)
        };
        self.inner.messages.record(batch, &bent).await
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let mut page = self.inner.messages.history(session, window, limit).await?;
        if self.broken == Break::FirstIsSkipped && !page.items.is_empty() {
            page.items.remove(0);
        }
        Ok(page)
    }
}
