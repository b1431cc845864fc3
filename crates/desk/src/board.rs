//! The supervisor's board: figures of all nodes together, kept from events and pushed while somebody looks.
//!
//! Every node hears what happens to sessions and agents anywhere (N1). So a node whose supervisors look keeps its
//! own account, which costs no question to the store; only rows of agents that an event named are read. Once a
//! minute the account is read anew as a whole, which puts right what a lost word left wrong (A1).

mod tally;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kefu_console::{BOARD_MINUTES, BoardFigures};
use kefu_core::{Caller, Clock, ConnId, SessionId, StoreFault, Timestamp};
use kefu_events::{Envelope, Event};
use kefu_messaging::{Message, Push, Side};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::watch::only_supervisors;
use crate::{Connections, Desk, DeskError, Stores};
use tally::Tally;

/// Between two pushes.
const PUSH_EVERY: Duration = Duration::from_secs(2);
/// How long the account goes without being read anew; also when the minutes turn.
const MINUTE: Duration = Duration::from_secs(60);
/// Open sessions and agents read at a time.
const PAGE: u32 = 1_000;
/// Events kept while the account is read: what comes beyond is put right a minute later.
const MEANWHILE: usize = 65_536;

/// One node's account, and who looks at it.
pub(crate) struct Board {
    stores: Stores,
    connections: Arc<dyn Connections>,
    clock: Arc<dyn Clock>,
    /// Whether anybody looks: else events cost nothing.
    is_open: AtomicBool,
    changed: Notify,
    state: Mutex<State>,
    /// One reading at a time.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    viewers: BTreeSet<ConnId>,
    /// `None` until the first reading.
    tally: Option<Tally>,
    /// What happened while the account was read.
    meanwhile: Option<Vec<Word>>,
    shown: Option<BoardFigures>,
}

enum Word {
    Event(Event, Timestamp),
    Reply(SessionId, Timestamp),
}

impl Word {
    fn tell(&self, tally: &mut Tally) -> bool {
        match self {
            Self::Event(event, time) => tally.apply(event, *time),
            Self::Reply(session, at) => tally.replied(*session, *at),
        }
    }
}

impl Board {
    pub(crate) fn new(
        stores: Stores,
        connections: Arc<dyn Connections>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            stores,
            connections,
            clock,
            is_open: AtomicBool::new(false),
            changed: Notify::new(),
            state: Mutex::default(),
            reading: tokio::sync::Mutex::new(()),
        }
    }

    /// Whether anybody looks here, so that other nodes say what only boards need.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Something happened, here or on another node.
    pub(crate) fn note(&self, envelope: &Envelope) {
        if self.is_open() {
            self.take(Word::Event(envelope.event.clone(), envelope.time));
        }
    }

    /// A message was stored, here or on another node.
    pub(crate) fn note_message(&self, message: &Message) {
        if self.is_open() && message.sender.side() == Side::Agent {
            self.take(Word::Reply(message.session_id, message.create_time));
        }
    }

    fn take(&self, word: Word) {
        let mut state = self.state();
        let told = state.tally.as_mut().is_some_and(|tally| word.tell(tally));
        if let Some(meanwhile) = state.meanwhile.as_mut().filter(|words| words.len() < MEANWHILE) {
            meanwhile.push(word);
        }
        drop(state);
        if told {
            self.changed.notify_one();
        }
    }

    /// A connection looks from now on; what it sees first.
    async fn open(&self, conn: ConnId) -> Result<BoardFigures, StoreFault> {
        let is_known = {
            let mut state = self.state();
            state.viewers.insert(conn);
            self.is_open.store(true, Ordering::SeqCst);
            state.tally.is_some()
        };
        if !is_known {
            self.read().await.inspect_err(|_| {
                self.close(conn);
            })?;
        }
        self.figures().await
    }

    /// A connection looks no longer. Whether it did.
    pub(crate) fn close(&self, conn: ConnId) -> bool {
        let mut state = self.state();
        let looked = state.viewers.remove(&conn);
        if state.viewers.is_empty() {
            self.is_open.store(false, Ordering::SeqCst);
            // Nobody keeps it from now on.
            state.tally = None;
            state.shown = None;
        }
        looked
    }

    /// Reads the account as a whole. What happens meanwhile is told to the new one too.
    async fn read(&self) -> Result<(), StoreFault> {
        let _alone = self.reading.lock().await;
        self.state().meanwhile = Some(Vec::new());
        let read = self.read_rows().await;
        let mut state = self.state();
        let meanwhile = state.meanwhile.take().unwrap_or_default();
        let mut tally = read?;
        for word in &meanwhile {
            word.tell(&mut tally);
        }
        if !state.viewers.is_empty() {
            state.tally = Some(tally);
        }
        Ok(())
    }

    async fn read_rows(&self) -> Result<Tally, StoreFault> {
        let minutes = u32::try_from(BOARD_MINUTES).unwrap_or(u32::MAX);
        let since = self.clock.now().before(MINUTE * minutes);
        let mut open = Vec::new();
        loop {
            let after = open.last().map(|session: &kefu_session::Session| session.id);
            let page = self.stores.sessions.list_open_after(after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            open.extend(page);
            if is_last {
                break;
            }
        }
        let opened = self.stores.search.list_opened(since).await?;
        let mut agents = Vec::new();
        loop {
            let after =
                agents.last().map(|agent: &kefu_presence::Agent| agent.info.admin_id.clone());
            let page = self.stores.agents.list_after(after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            agents.extend(page);
            if is_last {
                break;
            }
        }
        Ok(Tally::read(&open, opened, &agents))
    }

    /// The figures now, with the rows of agents that events named since.
    async fn figures(&self) -> Result<BoardFigures, StoreFault> {
        let stale = self.state().tally.as_mut().map(Tally::take_stale).unwrap_or_default();
        let mut rows = Vec::with_capacity(stale.len());
        for admin in &stale {
            match self.stores.agents.find(admin).await {
                Ok(row) => rows.extend(row),
                Err(fault) => {
                    if let Some(tally) = &mut self.state().tally {
                        tally.put_back(stale);
                    }
                    return Err(fault);
                }
            }
        }
        let now = self.clock.now();
        let mut state = self.state();
        // Whoever looked may have stopped meanwhile.
        let Some(tally) = &mut state.tally else { return Ok(Tally::default().figures(now)) };
        rows.iter().for_each(|row| tally.saw(row));
        Ok(tally.figures(now))
    }

    /// Pushes what changed to those who look, until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut read_at = Instant::now() + self.to_next_minute();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(read_at) => {
                    read_at = Instant::now() + self.to_next_minute();
                    if self.is_open() && let Err(fault) = self.read().await {
                        tracing::warn!(%fault, "the board is not read anew");
                    }
                }
            }
            if !self.is_open() {
                continue;
            }
            match self.figures().await {
                Ok(figures) => self.show(figures).await,
                Err(fault) => tracing::warn!(%fault, "the board is held up"),
            }
            // A chosen pace: what changes meanwhile is in the next push.
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PUSH_EVERY) => {}
            }
        }
    }

    async fn show(&self, figures: BoardFigures) {
        let viewers = {
            let mut state = self.state();
            if state.shown.as_ref().is_some_and(|shown| shown.says_the_same_as(&figures)) {
                return;
            }
            state.shown = Some(figures.clone());
            state.viewers.clone()
        };
        let push = Push::Board(Arc::new(figures));
        for conn in viewers {
            self.connections.push_one(conn, &push).await;
        }
    }

    fn to_next_minute(&self) -> Duration {
        let minute = i64::try_from(MINUTE.as_millis()).unwrap_or(i64::MAX);
        let left = minute - self.clock.now().0.rem_euclid(minute);
        Duration::from_millis(left.unsigned_abs())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// The board now; with `subscribe` also pushed to `conn` from now on, else no longer.
    ///
    /// # Errors
    /// `forbidden` unless a supervisor.
    pub async fn board(
        &self,
        caller: &Caller,
        conn: ConnId,
        subscribe: bool,
    ) -> Result<BoardFigures, DeskError> {
        only_supervisors(caller)?;
        let figures = self.board.open(conn).await?;
        if !subscribe {
            self.board.close(conn);
        }
        self.say_watched().await;
        Ok(figures)
    }
}
