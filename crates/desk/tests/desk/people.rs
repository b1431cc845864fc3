//! The people connected, as the tests' gateway knows them: everything pushed is noted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{ConnId, Person, Seq, SessionId};
use kefu_desk::{Connections, Position};
use kefu_messaging::{Message, Push, Pusher, Reach};
use tokio::time::Instant;

use crate::common::kind;

/// One push to one connection.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) second: f64,
    pub(crate) conn: ConnId,
    pub(crate) push: Push,
}

pub(crate) struct People {
    start: Instant,
    connections: Mutex<BTreeMap<ConnId, Person>>,
    supervisors: Mutex<BTreeSet<ConnId>>,
    log: Mutex<Vec<Sent>>,
    positions: Mutex<Vec<Position>>,
    /// How far each connection has each session, where a test has it followed as a gateway does (M5).
    served: Mutex<Option<BTreeMap<(ConnId, SessionId), Seq>>>,
    /// What is long on its way from the decision to the connection, and how long.
    lag: Mutex<Option<(&'static str, Duration)>>,
}

impl People {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            connections: Mutex::default(),
            supervisors: Mutex::default(),
            log: Mutex::default(),
            positions: Mutex::default(),
            served: Mutex::default(),
            lag: Mutex::default(),
        })
    }

    /// From now on pushes of this name take this long.
    pub(crate) fn lag(&self, name: &'static str, lag: Duration) {
        *self.lag.lock().expect("no panic") = Some((name, lag));
    }

    async fn travel(&self, push: &Push) {
        let lag = *self.lag.lock().expect("no panic");
        if let Some((_, lag)) = lag.filter(|(name, _)| *name == kind(push)) {
            // tidy: time is paused
            tokio::time::sleep(lag).await;
        }
    }

    /// From now on the positions come from what is pushed.
    pub(crate) fn follow(&self) {
        self.served.lock().expect("no panic").get_or_insert_default();
    }

    /// The connection has the session up to `upto`, by an answer.
    pub(crate) fn served(&self, conn: ConnId, session: SessionId, upto: Seq) {
        if let Some(served) = &mut *self.served.lock().expect("no panic") {
            served.insert((conn, session), upto);
        }
    }

    /// A supervisor's connection.
    pub(crate) fn add_supervisor(&self, conn: ConnId, person: Person) {
        self.supervisors.lock().expect("no panic").insert(conn);
        self.add(conn, person);
    }

    pub(crate) fn add(&self, conn: ConnId, person: Person) {
        self.connections.lock().expect("no panic").insert(conn, person);
    }

    pub(crate) fn remove(&self, conn: ConnId) {
        self.connections.lock().expect("no panic").remove(&conn);
    }

    /// The connection's own send was answered.
    pub(crate) fn wrote(&self, conn: ConnId, message: &Message) {
        if let Some(served) = &mut *self.served.lock().expect("no panic") {
            carry(served, conn, message);
        }
    }

    pub(crate) fn place(&self, positions: &[Position]) {
        *self.positions.lock().expect("no panic") = positions.to_vec();
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.log.lock().expect("no panic")
    }

    fn note(&self, conn: ConnId, push: &Push) {
        let second = self.start.elapsed().as_millis() as f64 / 1_000.0;
        tracing::info!(target: "probe", "{} to {conn}", kind(push));
        self.log().push(Sent { second, conn, push: push.clone() });
        if let Some(served) = &mut *self.served.lock().expect("no panic") {
            advance(served, conn, push);
        }
    }

    fn matching(&self, wanted: impl Fn(ConnId, &Person) -> bool) -> Vec<ConnId> {
        let connections = self.connections.lock().expect("no panic");
        connections
            .iter()
            .filter(|(conn, person)| wanted(**conn, person))
            .map(|(c, _)| *c)
            .collect()
    }
}

/// What a push changes about a connection's positions.
fn advance(served: &mut BTreeMap<(ConnId, SessionId), Seq>, conn: ConnId, push: &Push) {
    match push {
        Push::Message { message, .. } => carry(served, conn, message),
        Push::SessionNew(offer) => {
            served.insert((conn, offer.session_id), offer.last_seq);
        }
        Push::SessionRemoved { session_id, .. } | Push::Ended { session_id, .. } => {
            served.remove(&(conn, *session_id));
        }
        _ => {}
    }
}

fn carry(served: &mut BTreeMap<(ConnId, SessionId), Seq>, conn: ConnId, message: &Message) {
    if let Some(upto) = served.get_mut(&(conn, message.session_id))
        && message.seq == upto.next()
    {
        *upto = message.seq;
    }
}

#[async_trait]
impl Pusher for People {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        self.travel(push).await;
        let reached = self.matching(|conn, person| person == to && Some(conn) != except);
        reached.iter().for_each(|conn| self.note(*conn, push));
        Reach { connections: reached.len() }
    }

    async fn push_to_consoles(&self, push: &Push) {
        for conn in self.matching(|_, person| matches!(person, Person::Agent(_))) {
            self.note(conn, push);
        }
    }
}

#[async_trait]
impl Connections for People {
    fn positions(&self) -> Vec<Position> {
        let mut positions = self.positions.lock().expect("no panic").clone();
        let connections = self.connections.lock().expect("no panic");
        let served = self.served.lock().expect("no panic");
        positions.extend(served.iter().flatten().filter_map(|((conn, session_id), written)| {
            let person = connections.get(conn)?.clone();
            Some(Position { conn: *conn, person, session_id: *session_id, written: *written })
        }));
        positions
    }

    fn people(&self) -> Vec<(ConnId, Person)> {
        let connections = self.connections.lock().expect("no panic");
        connections.iter().map(|(conn, person)| (*conn, person.clone())).collect()
    }

    fn count(&self, person: &Person) -> usize {
        self.matching(|_, held| held == person).len()
    }

    async fn push_one(&self, conn: ConnId, push: &Push) {
        self.travel(push).await;
        self.note(conn, push);
    }

    async fn push_to_supervisors(&self, push: &Push, except: &[Person]) {
        let supervisors = self.supervisors.lock().expect("no panic").clone();
        for conn in self.matching(|_, person| !except.contains(person)) {
            if supervisors.contains(&conn) {
                self.note(conn, push);
            }
        }
    }
}
