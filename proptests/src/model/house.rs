//! The whole desk over memory, and the people connected to it: every push, answer and page that
//! reaches a device is kept and held against what is stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{
    Caller, ConnId, IdSource, ManualClock, MsgId, Person, Seq, SessionId, SnowflakeIds, WorkerId,
};
use kefu_desk::{
    ConnectAnswer, ConnectRequest, Connections, Desk, DeskConfig, DeskParts, Intent, Position,
    Stores,
};
use kefu_memory::{MemoryCoordination, MemoryWorld};
use kefu_messaging::{Message, Push, Pusher, Reach};
use kefu_testkit::build::{node, trace};
use kefu_upload::{LinkSigner, ObjectBlobStore, Uploads};
use object_store::memory::InMemory;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bent::bent;
use super::{Break, Setup};

/// The connections of the desk's node, and what was pushed to each.
struct People {
    connected: Mutex<BTreeMap<ConnId, Person>>,
    pushed: Mutex<Vec<(ConnId, Push)>>,
    /// Whether a push reaches everybody.
    is_loud: bool,
}

impl People {
    fn connected(&self) -> MutexGuard<'_, BTreeMap<ConnId, Person>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pushed(&self) -> MutexGuard<'_, Vec<(ConnId, Push)>> {
        self.pushed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push_where(&self, push: &Push, wanted: impl Fn(ConnId, &Person) -> bool) -> Reach {
        let connected = self.connected();
        let reached = connected.iter().filter(|(conn, person)| wanted(**conn, person));
        let reached: Vec<_> = reached.map(|(conn, _)| (*conn, push.clone())).collect();
        let connections = reached.len();
        self.pushed().extend(reached);
        Reach { connections }
    }
}

#[async_trait]
impl Pusher for People {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        self.push_where(push, |conn, person| (self.is_loud || person == to) && Some(conn) != except)
    }

    async fn push_to_consoles(&self, push: &Push) {
        self.push_where(push, |_, person| matches!(person, Person::Agent(_)));
    }
}

#[async_trait]
impl Connections for People {
    /// Healing is left out (M5): what is lost must be found again by connecting.
    fn positions(&self) -> Vec<Position> {
        Vec::new()
    }

    fn people(&self) -> Vec<(ConnId, Person)> {
        self.connected().iter().map(|(conn, person)| (*conn, person.clone())).collect()
    }

    fn count(&self, person: &Person) -> usize {
        self.connected().values().filter(|held| *held == person).count()
    }

    async fn push_one(&self, conn: ConnId, push: &Push) {
        self.push_where(push, |other, _| other == conn);
    }

    /// Nobody of this house is one.
    async fn push_to_supervisors(&self, _: &Push, _: &[Person]) {}
}

/// One connection.
pub struct Device {
    /// Whose it is.
    pub caller: Caller,
    /// Whether pushes to it are lost.
    pub is_deaf: bool,
    /// From where on it must have everything of these sessions while it hears.
    pub since: BTreeMap<SessionId, Seq>,
    /// What it has.
    pub held: BTreeMap<MsgId, Message>,
}

/// A desk, its people, and the rows behind it.
pub struct House {
    /// The rows as they are.
    pub stores: Stores,
    /// The desk, over stores with or without a broken rule.
    pub desk: Arc<Desk>,
    /// Who is connected.
    pub devices: BTreeMap<ConnId, Device>,
    people: Arc<People>,
    broken: Option<Break>,
    clock: Arc<ManualClock>,
    ids: Arc<dyn IdSource>,
    stop: CancellationToken,
    next: u64,
    runtime: Runtime,
}

impl House {
    /// An empty house. Time is paused, which SQLite's threads would not know of: memory only.
    ///
    /// # Panics
    /// When no runtime can be built.
    #[must_use]
    pub fn start<S: Setup>() -> Self {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let clock = Arc::new(ManualClock::default());
        let stores = MemoryWorld::new(Arc::clone(&clock) as _).stores();
        let ids = Arc::new(SnowflakeIds::new(Arc::clone(&clock) as _, WorkerId::default(), 0));
        let ids: Arc<dyn IdSource> = ids;
        let (people, stop) = (people(S::BROKEN), CancellationToken::new());
        let desk = {
            let _inside = runtime.enter();
            desk(bent(stores.clone(), S::BROKEN), &people, &clock, &ids, &stop)
        };
        let (devices, broken, next) = (BTreeMap::new(), S::BROKEN, 0);
        Self { stores, desk, devices, people, broken, clock, ids, stop, next, runtime }
    }

    /// Waits for the desk.
    pub fn wait<F: Future>(&self, answer: F) -> F::Output {
        self.runtime.block_on(answer)
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
        // tidy: time is paused
        self.wait(async { tokio::time::sleep(time).await });
    }

    /// The process dies without a word; another starts over the same rows, nobody connected.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.stop.cancel();
        (self.people, self.stop) = (people(self.broken), CancellationToken::new());
        self.devices.clear();
        let stores = bent(self.stores.clone(), self.broken);
        self.desk = {
            let _inside = self.runtime.enter();
            desk(stores, &self.people, &self.clock, &self.ids, &self.stop)
        };
        self.wait(self.desk.start_up(&trace())).expect("started");
    }

    /// Connects a new device of `caller`.
    ///
    /// # Panics
    /// When the desk refuses it.
    pub fn connect(
        &mut self,
        caller: &Caller,
        intent: Intent,
        positions: BTreeMap<SessionId, Seq>,
    ) -> (ConnId, ConnectAnswer) {
        self.next += 1;
        let conn = ConnId(self.next);
        self.people.connected().insert(conn, caller.person());
        let request = ConnectRequest { intent, source: "shop".into(), positions };
        let answer = self.wait(self.desk.connect(caller, conn, &request, &trace()));
        let answer = answer.expect("connected");
        let held = answer.unread.iter().map(|message| (message.msg_id, message.clone())).collect();
        let (caller, since) = (caller.clone(), BTreeMap::new());
        self.devices.insert(conn, Device { caller, is_deaf: false, since, held });
        (conn, answer)
    }

    /// A device goes without a word.
    pub fn drop_device(&mut self, conn: ConnId) {
        self.people.connected().remove(&conn);
        if let Some(device) = self.devices.remove(&conn) {
            self.wait(self.desk.disconnect(&device.caller, conn, &trace()));
        }
    }

    /// What was pushed since the last call; a device that hears keeps the messages. A session that an
    /// agent gets again after it was taken away is pulled by its position, so it is owed no more.
    pub fn hear(&mut self) -> Vec<(ConnId, Push)> {
        let pushed = std::mem::take(&mut *self.people.pushed());
        for (conn, push) in &pushed {
            let Some(device) = self.devices.get_mut(conn) else { continue };
            match push {
                Push::Message { message, .. } if !device.is_deaf => {
                    let message = message.as_ref().clone();
                    device.held.entry(message.msg_id).or_insert(message);
                }
                Push::SessionRemoved { session_id, .. } => {
                    device.since.remove(session_id);
                }
                _ => {}
            }
        }
        pushed
    }
}

fn people(broken: Option<Break>) -> Arc<People> {
    let is_loud = broken == Some(Break::PushesReachAll);
    Arc::new(People { connected: Mutex::default(), pushed: Mutex::default(), is_loud })
}

/// A desk with coordination of its own.
fn desk(
    stores: Stores,
    people: &Arc<People>,
    clock: &Arc<ManualClock>,
    ids: &Arc<dyn IdSource>,
    stop: &CancellationToken,
) -> Arc<Desk> {
    let clock: Arc<dyn kefu_core::Clock> = Arc::clone(clock) as _;
    let uploads = Uploads::new(
        Arc::new(ObjectBlobStore::new(Arc::new(InMemory::new()), "")),
        Arc::clone(&stores.uploads),
        LinkSigner::new(&[7; 32], Duration::from_secs(900)).expect("long enough"),
        Arc::clone(&clock),
    );
    let parts = DeskParts {
        stores,
        coordination: MemoryCoordination::new(Arc::clone(&clock)).ports(),
        cluster: None,
        connections: Arc::clone(people) as Arc<dyn Connections>,
        uploads: Arc::new(uploads),
        clock,
        ids: Arc::clone(ids),
        node: node(),
        interceptors: Vec::new(),
        config: DeskConfig::default(),
    };
    Desk::start(parts, &trace(), &TaskTracker::new(), stop)
}
