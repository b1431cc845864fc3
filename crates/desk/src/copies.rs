//! Keeping the copies at the rows (A1): what changed is read again and applied, newer only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use kefu_assignment::{LoadBoard, LoadCopy, SessionCopy};
use kefu_core::{AdminId, SessionId, StoreFault};
use kefu_events::{Envelope, Event, Handler, HandlerError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Stores;

/// Rows applied at once.
const BATCH: usize = 256;
/// Rows read at once.
const READS: usize = 8;
/// Rows read in one page of a rebuild.
const PAGE: u32 = 1_000;
/// Changed rows remembered while they cannot be applied; beyond it everything is rebuilt instead.
const REMEMBERED: usize = 65_536;
/// Between two tries while the copies cannot be reached.
const AGAIN: Duration = Duration::from_secs(1);

/// Brings copies up to what this process changed, and rebuilds them.
pub(crate) struct Copies {
    stores: Stores,
    board: Arc<dyn LoadBoard>,
    changed: Mutex<Changed>,
    wake: Notify,
}

/// Rows whose copies may be older. A set, so that a row that changes often is applied once.
#[derive(Default)]
struct Changed {
    sessions: BTreeSet<SessionId>,
    agents: BTreeSet<AdminId>,
    /// Too many to remember: all of them.
    everything: bool,
}

impl Copies {
    pub(crate) const NAME: &'static str = "copies";

    pub(crate) fn new(stores: Stores, board: Arc<dyn LoadBoard>) -> Self {
        Self { stores, board, changed: Mutex::default(), wake: Notify::new() }
    }

    /// Notes the rows that an event is about.
    pub(crate) fn note(&self, event: &Event) {
        let mut changed = self.changed();
        match event {
            Event::SessionOpened { session_id, .. } => changed.note(*session_id, None, None),
            Event::SessionAssigned { session_id, admin_id, from, .. } => {
                changed.note(*session_id, Some(admin_id), from.as_ref());
            }
            Event::SessionRequeued { session_id, from, .. } => {
                changed.note(*session_id, Some(from), None);
            }
            Event::SessionEnded { session_id, admin_id, .. } => {
                changed.note(*session_id, admin_id.as_ref(), None);
            }
            Event::AgentChanged { admin_id, .. } => {
                changed.agents.insert(admin_id.clone());
            }
            // Neither an owner nor a load nor the line.
            Event::SessionRated { .. } | Event::MessageStored { .. } | Event::NoteAdded { .. } => {
                return;
            }
        }
        drop(changed);
        self.wake.notify_one();
    }

    /// Applies what was noted, until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
            }
            while let Err(fault) = self.apply_changed().await {
                metrics::counter!("kefu_copies_held_up_total").increment(1);
                tracing::debug!(%fault, "copies are held up");
                // A back-off: nothing announces that the copies can be reached again.
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
        }
    }

    async fn apply_changed(&self) -> Result<(), StoreFault> {
        if self.changed().everything {
            // Lowered first: what changes meanwhile is noted for itself.
            self.changed().everything = false;
            self.reconcile().await.inspect_err(|_| self.changed().everything = true)?;
        }
        loop {
            let (sessions, agents) = self.changed().take();
            if sessions.is_empty() && agents.is_empty() {
                return Ok(());
            }
            if let Err(fault) = self.apply(&sessions, &agents).await {
                let mut changed = self.changed();
                changed.sessions.extend(sessions);
                changed.agents.extend(agents);
                return Err(fault);
            }
        }
    }

    /// Reads rows and brings their copies up to them.
    async fn apply(&self, sessions: &[SessionId], agents: &[AdminId]) -> Result<(), StoreFault> {
        let sessions: Vec<_> = stream::iter(sessions.iter().copied())
            .map(|id| async move { self.stores.sessions.find(id).await })
            .buffered(READS)
            .try_filter_map(|row| async move { Ok(row.as_ref().map(SessionCopy::from)) })
            .try_collect()
            .await?;
        let agents: Vec<_> = stream::iter(agents.iter().cloned())
            .map(|id| async move { self.stores.agents.find(&id).await })
            .buffered(READS)
            .try_filter_map(|row| async move { Ok(row.as_ref().map(LoadCopy::from)) })
            .try_collect()
            .await?;
        self.board.apply(&sessions, &agents).await
    }

    /// Brings every copy up to its row, under load too: what is newer stays (A1). Gives the sessions
    /// whose rows were open.
    async fn rebuild(&self) -> Result<BTreeSet<SessionId>, StoreFault> {
        metrics::counter!("kefu_copies_rebuilt_total").increment(1);
        let (open, ()) = tokio::try_join!(self.rebuild_sessions(), self.rebuild_loads())?;
        Ok(open)
    }

    async fn rebuild_sessions(&self) -> Result<BTreeSet<SessionId>, StoreFault> {
        let sessions = &self.stores.sessions;
        let mut open = BTreeSet::new();
        let mut page = sessions.list_open_after(None, PAGE).await?;
        while let Some(last) = page.last().map(|session| session.id) {
            let copies: Vec<_> = page.iter().map(SessionCopy::from).collect();
            // The next page is read while this one is applied.
            let next = sessions.list_open_after(Some(last), PAGE);
            (page, ()) = tokio::try_join!(next, self.board.apply(&copies, &[]))?;
            open.extend(copies.into_iter().map(|copy| copy.session_id));
        }
        Ok(open)
    }

    async fn rebuild_loads(&self) -> Result<(), StoreFault> {
        let mut after = None;
        loop {
            let page = self.stores.agents.list_after(after.as_ref(), PAGE).await?;
            let copies: Vec<_> = page.iter().map(LoadCopy::from).collect();
            self.board.apply(&[], &copies).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.info.admin_id.clone());
        }
    }

    /// Rebuilds, and takes away what should no longer be there: a copy whose row has ended.
    pub(crate) async fn reconcile(&self) -> Result<(), StoreFault> {
        let open = self.rebuild().await?;
        let mut cursor = None;
        loop {
            let page = self.board.list_open(cursor).await?;
            // Those whose rows were open a moment ago were brought up to them; should one have ended
            // since, its end is an event of its own.
            let strange: Vec<_> =
                page.sessions.into_iter().filter(|session| !open.contains(session)).collect();
            for ids in strange.chunks(BATCH) {
                self.apply(ids, &[]).await?;
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    fn changed(&self) -> std::sync::MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changed {
    fn note(&mut self, session: SessionId, one: Option<&AdminId>, other: Option<&AdminId>) {
        self.sessions.insert(session);
        self.agents.extend(one.into_iter().chain(other).cloned());
        if self.sessions.len() + self.agents.len() > REMEMBERED {
            *self = Self { everything: true, ..Self::default() };
        }
    }

    fn take(&mut self) -> (Vec<SessionId>, Vec<AdminId>) {
        let sessions = std::iter::from_fn(|| self.sessions.pop_first()).take(BATCH).collect();
        let agents = std::iter::from_fn(|| self.agents.pop_first()).take(BATCH).collect();
        (sessions, agents)
    }
}

#[async_trait]
impl Handler for Copies {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        self.note(&envelope.event);
        Ok(())
    }
}
