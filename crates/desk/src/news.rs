//! What waiting visitors and consoles hear about the line (Q2), coalesced over 250 ms.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kefu_core::limit::{QUEUE_COALESCE, QUEUE_LIST};
use kefu_core::{Clock, IdSource, Person, SessionId, StoreFault};
use kefu_messaging::{Push, Pusher, QueueEntry};
use kefu_queue::{Line, Outlook, Place, decide_notice};
use kefu_session::{Session, SessionVerdict, Updated};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Connections, Stores};

/// Rest after telling, as a multiple of what the telling took: a line of many thousands, where every
/// arrival changes everybody's total, must leave the processor to those who chat.
const REST: u32 = 4;
/// However long the line is, its news are not older than this.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// Places told before other tasks get their turn.
const BREATH: u32 = 256;

/// The front of the line as consoles see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNews {
    /// The first 50.
    pub entries: Arc<[QueueEntry]>,
    /// How many wait.
    pub total: u32,
    /// Grows, so that an older list is noticed.
    pub version: i64,
}

/// Tells waiting visitors their place, or that nobody is online, and consoles the line.
pub(crate) struct News {
    stores: Stores,
    connections: Arc<dyn Connections>,
    /// Also to the people's connections elsewhere.
    pusher: Arc<dyn Pusher>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    wake: Notify,
    version: AtomicI64,
    told: Mutex<Told>,
}

/// What was last said to whom, on this node.
#[derive(Default)]
struct Told {
    places: HashMap<SessionId, Place>,
    /// Since the telling under way began: what it says of these may be too old already.
    forgotten: HashSet<SessionId>,
    list: Option<(Arc<[QueueEntry]>, u32)>,
}

impl News {
    pub(crate) fn start(
        stores: &Stores,
        connections: &Arc<dyn Connections>,
        pusher: &Arc<dyn Pusher>,
        clock: &Arc<dyn Clock>,
        ids: &Arc<dyn IdSource>,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let news = Arc::new(Self {
            stores: stores.clone(),
            connections: Arc::clone(connections),
            pusher: Arc::clone(pusher),
            clock: Arc::clone(clock),
            ids: Arc::clone(ids),
            wake: Notify::new(),
            version: AtomicI64::new(0),
            told: Mutex::new(Told::default()),
        });
        tracker.spawn(Arc::clone(&news).run(stop.clone()));
        news
    }

    /// Something about the line may have changed.
    pub(crate) fn touch(&self) {
        self.wake.notify_one();
    }

    /// What was said to this session no longer holds: say it anew (requeue, end).
    pub(crate) fn forget(&self, session: SessionId) {
        let mut told = self.told();
        told.places.remove(&session);
        told.forgotten.insert(session);
        drop(told);
        self.touch();
    }

    /// The front of the line now.
    pub(crate) async fn list(&self) -> Result<QueueNews, StoreFault> {
        // The version is taken first: a list can then only be newer than it says, never older.
        let version = self.next_version();
        let line = self.stores.line.front(QUEUE_LIST).await?;
        let entries = entries(&line.sessions);
        Ok(QueueNews { entries, total: line.total, version })
    }

    /// Milliseconds, or one more than the last: grows over restarts, and JavaScript keeps it exactly.
    fn next_version(&self) -> i64 {
        let now = self.clock.now().0;
        let next = |last: i64| Some(now.max(last + 1));
        let last = self.version.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        now.max(last.unwrap_or_else(|last| last) + 1)
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
            }
            let begun = Instant::now();
            if let Err(fault) = self.tell().await {
                tracing::warn!(%fault, "queue news are held up");
                self.touch();
            }
            // Coalescing, not synchronisation: whatever changes meanwhile is told together (Q2).
            let rest = (begun.elapsed() * REST).clamp(QUEUE_COALESCE, LONGEST_REST);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    async fn tell(&self) -> Result<(), StoreFault> {
        self.told().forgotten.clear();
        // Who connects asks for news.
        if self.connections.is_empty() {
            return Ok(());
        }
        self.tell_consoles().await?;
        // Somebody has room: the drain is about to serve the front, a place would be a false alarm.
        if !self.stores.agents.list_eligible(1).await?.is_empty() {
            return Ok(());
        }
        let line = self.stores.line.front(u32::MAX).await?;
        let online = self.stores.agents.list_online().await?.iter().any(|agent| agent.live);
        match Outlook::when(online) {
            Outlook::Queued => self.tell_places(&line).await,
            Outlook::LeaveMessage => self.tell_nobody_is_online(&line).await?,
        }
        Ok(())
    }

    async fn tell_consoles(&self) -> Result<(), StoreFault> {
        let news = self.list().await?;
        let said = (Arc::clone(&news.entries), news.total);
        if self.told().list.as_ref() == Some(&said) {
            return Ok(());
        }
        let push =
            Push::QueueList { entries: news.entries, total: news.total, version: news.version };
        self.connections.push_to_consoles(&push).await;
        self.told().list = Some(said);
        Ok(())
    }

    async fn tell_places(&self, line: &Line) {
        let mut places = HashMap::with_capacity(line.sessions.len());
        for (session, position) in line.sessions.iter().zip(1..) {
            if position % BREATH == 0 {
                tokio::task::yield_now().await;
            }
            let place = Place { position, total: line.total };
            let known = self.told().places.get(&session.id) == Some(&place);
            if !known {
                let push =
                    Push::QueuePosition { session_id: session.id, position, total: line.total };
                let user = Person::User(session.user.user_id.clone());
                self.connections.push(&user, &push, None).await;
            }
            places.insert(session.id, place);
        }
        let mut told = self.told();
        places.retain(|session, _| !told.forgotten.contains(session));
        told.places = places;
    }

    async fn tell_nobody_is_online(&self, line: &Line) -> Result<(), StoreFault> {
        self.told().places.clear();
        let now = self.clock.now();
        for session in &line.sessions {
            // Most were told already; only the others cost a transaction.
            if matches!(decide_notice(session, now), SessionVerdict::Keep) {
                continue;
            }
            let user = Person::User(session.user.user_id.clone());
            // Who is away is told on coming back, which asks for news too, and who is on another node
            // is told by that node: a notice that nobody saw would count for ten minutes.
            if !self.connections.holds(&user) {
                continue;
            }
            let updated = self
                .stores
                .sessions
                .update(session.id, &|row, _| decide_notice(row, now), self.ids.as_ref())
                .await?;
            // Whoever wrote it tells every device, wherever it is: nobody else will for ten minutes.
            if let Updated::Written(..) = updated {
                self.pusher.push(&user, &Push::OfflineNotice, None).await;
            }
        }
        Ok(())
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entries(sessions: &[Session]) -> Arc<[QueueEntry]> {
    let entry = |(session, position): (&Session, u32)| QueueEntry {
        session_id: session.id,
        user: session.user_info(),
        waiting_since: session.queued_at,
        position,
    };
    sessions.iter().zip(1..).map(entry).collect()
}
