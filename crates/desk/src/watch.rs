//! Supervisors who watch a session: they get its frames, and give none.
//!
//! A watch is of a connection. Nothing of it is stored: each node says now and then, and whenever it changes, what is watched
//! on it, and the others send it those sessions' words too (N1).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{Caller, ConnId, NodeName, Person, Role, SessionId};
use kefu_events::Event;
use kefu_messaging::{Push, Pusher, Reach, Side};
use kefu_session::Refusal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fanout::{Fanout, ended_push};
use crate::sweep::{every, tick};
use crate::{Connections, Desk, DeskError, NodeMessage, SessionView};

/// Sessions that one connection watches.
const AT_MOST: usize = 50;
/// Between two words about what is watched here, which nodes that joined meanwhile wait for.
const SAY_EVERY: Duration = Duration::from_secs(20);
/// What another node said holds this long: three of its words may be lost.
const HOLDS: Duration = Duration::from_secs(70);

/// What is watched, here and elsewhere.
pub(crate) struct Watchers {
    connections: Arc<dyn Connections>,
    /// Whether anything is watched here, so that messages cost nothing otherwise.
    any_here: AtomicBool,
    /// Whether another node said that something is watched there.
    any_elsewhere: AtomicBool,
    here: Mutex<HashMap<SessionId, BTreeSet<ConnId>>>,
    elsewhere: Mutex<BTreeMap<NodeName, Elsewhere>>,
}

struct Elsewhere {
    until: Instant,
    sessions: BTreeSet<SessionId>,
    board: bool,
}

impl Watchers {
    pub(crate) fn new(connections: Arc<dyn Connections>) -> Self {
        Self {
            connections,
            any_here: AtomicBool::new(false),
            any_elsewhere: AtomicBool::new(false),
            here: Mutex::default(),
            elsewhere: Mutex::default(),
        }
    }

    /// Whether this connection watches the session.
    pub(crate) fn is_watching(&self, conn: ConnId, session: SessionId) -> bool {
        self.here().get(&session).is_some_and(|watching| watching.contains(&conn))
    }

    /// Whether anybody here watches the session.
    pub(crate) fn watches(&self, session: SessionId) -> bool {
        self.any_here.load(Ordering::SeqCst) && self.here().contains_key(&session)
    }

    /// Pushes something of a session to those who watch it here.
    pub(crate) async fn tell(&self, session: SessionId, push: &Push) {
        if !self.any_here.load(Ordering::SeqCst) {
            return;
        }
        let watching = self.here().get(&session).cloned().unwrap_or_default();
        for conn in watching {
            self.connections.push_one(conn, push).await;
        }
    }

    /// The session is over: who watched it was told.
    pub(crate) fn over(&self, session: SessionId) {
        self.change(|here| {
            here.remove(&session);
        });
    }

    /// A connection is gone. Whether it watched anything.
    pub(crate) fn leave(&self, conn: ConnId) -> bool {
        if !self.any_here.load(Ordering::SeqCst) {
            return false;
        }
        let mut watched = false;
        self.change(|here| {
            here.retain(|_, watching| {
                watched |= watching.remove(&conn);
                !watching.is_empty()
            });
        });
        watched
    }

    fn begin(&self, conn: ConnId, session: SessionId) -> Result<(), Refusal> {
        let mut begun = Ok(());
        self.change(|here| {
            let others = here
                .iter()
                .filter(|(other, watching)| **other != session && watching.contains(&conn));
            if others.count() >= AT_MOST {
                begun = Err(Refusal::BadRequest("too many sessions are watched"));
                return;
            }
            here.entry(session).or_default().insert(conn);
        });
        begun
    }

    fn end(&self, conn: ConnId, session: SessionId) {
        self.change(|here| {
            if let Some(watching) = here.get_mut(&session) {
                watching.remove(&conn);
            }
            here.retain(|_, watching| !watching.is_empty());
        });
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<SessionId, BTreeSet<ConnId>>)) {
        let mut here = self.here();
        change(&mut here);
        self.any_here.store(!here.is_empty(), Ordering::SeqCst);
    }

    fn watched_here(&self) -> BTreeSet<SessionId> {
        self.here().keys().copied().collect()
    }

    /// Another node said what is watched there.
    pub(crate) fn heard(&self, node: NodeName, sessions: BTreeSet<SessionId>, board: bool) {
        let mut elsewhere = self.elsewhere();
        elsewhere.remove(&node);
        if board || !sessions.is_empty() {
            let until = Instant::now() + HOLDS;
            elsewhere.insert(node, Elsewhere { until, sessions, board });
        }
        self.any_elsewhere.store(!elsewhere.is_empty(), Ordering::SeqCst);
    }

    /// The nodes on which the session is watched.
    pub(crate) fn nodes_of(&self, session: SessionId) -> Vec<NodeName> {
        self.nodes(|there| there.sessions.contains(&session))
    }

    /// The nodes on which somebody looks at the board.
    pub(crate) fn nodes_with_board(&self) -> Vec<NodeName> {
        self.nodes(|there| there.board)
    }

    fn nodes(&self, wanted: impl Fn(&Elsewhere) -> bool) -> Vec<NodeName> {
        if !self.any_elsewhere.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let now = Instant::now();
        let elsewhere = self.elsewhere();
        let nodes = elsewhere.iter().filter(|(_, there)| there.until > now && wanted(there));
        nodes.map(|(node, _)| node.clone()).collect()
    }

    fn here(&self) -> MutexGuard<'_, HashMap<SessionId, BTreeSet<ConnId>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elsewhere(&self) -> MutexGuard<'_, BTreeMap<NodeName, Elsewhere>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pushes to people, and lets those who watch the session see what no event stands for.
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Pusher>,
    pub(crate) watchers: Arc<Watchers>,
}

#[async_trait]
impl Pusher for Watched {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        let reach = self.inner.push(to, push, except).await;
        self.watchers.see(to, push).await;
        reach
    }

    async fn push_to_consoles(&self, push: &Push) {
        self.inner.push_to_consoles(push).await;
    }
}

impl Watchers {
    /// Shows those who watch what was pushed to `to`, if no event stands for it.
    pub(crate) async fn see(&self, to: &Person, push: &Push) {
        match push {
            Push::PeerAck { session_id, .. } | Push::Page { session_id, .. } => {
                self.tell(*session_id, push).await;
            }
            Push::Typing { session_id, is_typing } => {
                let by = match to {
                    Person::User(_) => Side::Agent,
                    Person::Agent(_) => Side::User,
                };
                let (session_id, is_typing) = (*session_id, *is_typing);
                let seen = Push::WatchedTyping { session_id, is_typing, by };
                self.tell(session_id, &seen).await;
            }
            // What has an event is told from it; the rest is of a person or of the line.
            Push::Message { .. }
            | Push::Assigned { .. }
            | Push::Ended { .. }
            | Push::Rated { .. }
            | Push::Requeued { .. }
            | Push::OfflineNotice
            | Push::QueuePosition { .. }
            | Push::SessionNew(_)
            | Push::SessionRemoved { .. }
            | Push::QueueList { .. }
            | Push::AgentStatus { .. }
            | Push::Note { .. }
            | Push::WatchedTyping { .. }
            | Push::Read { .. }
            | Push::Board(_) => {}
        }
    }
}

impl Fanout {
    /// What happens to a watched session, for those who watch it.
    pub(crate) async fn show_watchers(&self, event: &Event) -> Result<(), DeskError> {
        let (Event::SessionAssigned { session_id, .. }
        | Event::SessionRequeued { session_id, .. }
        | Event::SessionEnded { session_id, .. }) = event
        else {
            return Ok(());
        };
        if !self.watchers.watches(*session_id) {
            return Ok(());
        }
        let session_id = *session_id;
        match event {
            Event::SessionAssigned { admin_id, .. } => {
                if let Some(agent) = self.stores.agents.find(admin_id).await? {
                    let push = Push::Assigned { session_id, agent: agent.info };
                    self.watchers.tell(session_id, &push).await;
                }
            }
            Event::SessionRequeued { reason, .. } => {
                let push = Push::Requeued { session_id, reason: reason.as_str() };
                self.watchers.tell(session_id, &push).await;
            }
            Event::SessionEnded { .. } => {
                if let Some(session) = self.stores.sessions.find(session_id).await? {
                    self.watchers.tell(session_id, &ended_push(&session)).await;
                }
                self.watchers.over(session_id);
            }
            Event::SessionOpened { .. }
            | Event::SessionRated { .. }
            | Event::MessageStored { .. }
            | Event::AgentChanged { .. }
            | Event::NoteAdded { .. } => {}
        }
        Ok(())
    }
}

impl Desk {
    /// From now on the connection gets the session's frames, read-only; what is already there it pulls.
    ///
    /// # Errors
    /// `forbidden` unless a supervisor, `not_found`, `bad_request` for the 51st session of a connection.
    pub async fn watch_session(
        &self,
        caller: &Caller,
        conn: ConnId,
        session: SessionId,
    ) -> Result<(SessionView, u32), DeskError> {
        only_supervisors(caller)?;
        self.find(session).await?;
        self.watchers.begin(conn, session)?;
        self.say_watched().await;
        // Read once it is watched: what is not in the answer is pushed.
        let session = self.find(session).await?;
        if !session.is_open() {
            self.watchers.end(conn, session.id);
        }
        let unread = self.stores.messages.count_unread(&[session.id], Side::Agent).await?;
        let unread = unread.get(&session.id).copied().unwrap_or(0);
        Ok((self.view(session).await?, unread))
    }

    /// The connection gets nothing more of it. Repeating it is harmless.
    ///
    /// # Errors
    /// `forbidden` unless a supervisor.
    pub async fn unwatch_session(
        &self,
        caller: &Caller,
        conn: ConnId,
        session: SessionId,
    ) -> Result<(), DeskError> {
        only_supervisors(caller)?;
        self.watchers.end(conn, session);
        self.say_watched().await;
        Ok(())
    }

    /// Tells the other nodes what is looked at here. A lost word is said again soon.
    pub(crate) async fn say_watched(&self) {
        let Some(cluster) = &self.cluster else { return };
        let word = NodeMessage::Watching {
            node: self.source.node().clone(),
            sessions: self.watchers.watched_here(),
            board: self.board.is_open(),
        };
        if let Err(fault) = cluster.nodes.broadcast(&word).await {
            tracing::debug!(%fault, "other nodes do not hear what is watched here");
        }
    }

    /// A connection is gone: it looks at nothing any more.
    pub(crate) async fn look_away(&self, conn: ConnId) {
        let watched = self.watchers.leave(conn);
        if self.board.close(conn) || watched {
            self.say_watched().await;
        }
    }

    /// Says it again and again while there is anything, until `stop`.
    pub(crate) async fn keep_watched(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(SAY_EVERY);
        while tick(&mut ticks, &stop).await {
            if self.board.is_open() || !self.watchers.watched_here().is_empty() {
                self.say_watched().await;
            }
        }
    }
}

pub(crate) fn only_supervisors(caller: &Caller) -> Result<(), Refusal> {
    match caller.role() {
        Role::Supervisor => Ok(()),
        Role::User | Role::Agent => Err(Refusal::Forbidden),
    }
}
