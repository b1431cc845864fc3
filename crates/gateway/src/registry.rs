//! The live connections of this node: who is reached how. Implements the desk's [`Connections`].

mod outbound;
mod served;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::ws::Utf8Bytes;
use dashmap::DashMap;
use kefu_core::{ConnId, Person};
use kefu_desk::{Connections, Position};
use kefu_messaging::{Push, Pusher, Reach};
use kefu_protocol::{CloseCode, Locale, frame_of_push};
use kefu_upload::{UploadPath, Uploads};

pub(crate) use outbound::{Next, Note, Outbound};

/// One live connection, as pushes see it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) conn: ConnId,
    pub(crate) person: Person,
    pub(crate) is_supervisor: bool,
    pub(crate) locale: Locale,
    pub(crate) outbound: Arc<Outbound>,
}

/// All live connections, by person.
///
/// Sharded, since every push looks one up; a shard's lock is held for a look-up only, never while
/// anything is awaited.
pub struct Registry {
    people: DashMap<Person, Vec<Arc<Peer>>>,
    connections: DashMap<ConnId, Arc<Peer>>,
    consoles: DashMap<ConnId, Arc<Peer>>,
    outbound_bytes: usize,
    uploads: Arc<Uploads>,
}

impl Registry {
    /// An empty registry. `outbound_bytes` bounds each connection's queue (L1); `uploads` signs the
    /// links of images as they are sent out.
    #[must_use]
    pub fn new(outbound_bytes: usize, uploads: Arc<Uploads>) -> Arc<Self> {
        Arc::new(Self {
            people: DashMap::new(),
            connections: DashMap::new(),
            consoles: DashMap::new(),
            outbound_bytes,
            uploads,
        })
    }

    /// A queue for a new connection.
    pub(crate) fn outbound(&self) -> Arc<Outbound> {
        Arc::new(Outbound::new(self.outbound_bytes))
    }

    /// From now on pushes reach this connection. Adding it again replaces its language.
    pub(crate) fn add(&self, peer: Peer) {
        let peer = Arc::new(peer);
        let mut of_person = self.people.entry(peer.person.clone()).or_default();
        of_person.retain(|known| known.conn != peer.conn);
        of_person.push(Arc::clone(&peer));
        drop(of_person);
        if matches!(peer.person, Person::Agent(_)) {
            self.consoles.insert(peer.conn, Arc::clone(&peer));
        }
        self.connections.insert(peer.conn, peer);
    }

    /// Pushes no longer reach this connection.
    pub(crate) fn remove(&self, person: &Person, conn: ConnId) {
        self.connections.remove(&conn);
        self.consoles.remove(&conn);
        if let Some(mut of_person) = self.people.get_mut(person) {
            of_person.retain(|known| known.conn != conn);
        }
        self.people.remove_if(person, |_, of_person| of_person.is_empty());
    }

    /// How many connections are registered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether nobody is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Asks every connection to come back later (1012), spread evenly over `spread`, so that a
    /// restart does not meet all of them at once (L3).
    pub async fn close_all(&self, spread: Duration) {
        let peers: Vec<_> =
            self.connections.iter().map(|entry| Arc::clone(entry.value())).collect();
        let pause = spread.checked_div(u32::try_from(peers.len()).unwrap_or(u32::MAX));
        for peer in peers {
            peer.outbound.close(CloseCode::Restart);
            if let Some(pause) = pause.filter(|pause| !pause.is_zero()) {
                // A chosen pace, not a wait for anything.
                tokio::time::sleep(pause).await;
            }
        }
    }

    pub(crate) fn sign(&self, path: &UploadPath) -> String {
        self.uploads.link(path)
    }

    fn peers(&self, person: &Person) -> Vec<Arc<Peer>> {
        self.people.get(person).map(|peers| peers.clone()).unwrap_or_default()
    }

    fn encode(&self, push: &Push, locale: Locale) -> Utf8Bytes {
        let sign = |path: &UploadPath| self.sign(path);
        frame_of_push(push, &sign, locale).encode(None).into()
    }

    /// Serialises a frame once for all its receivers; only the offline notice has a language.
    fn spread(&self, peers: &[Arc<Peer>], push: &Push) -> usize {
        let mut written: Option<(Locale, Utf8Bytes)> = None;
        let mut taken = 0;
        for peer in peers {
            let frame = match &written {
                Some((locale, frame)) if *locale == peer.locale => frame.clone(),
                Some(_) | None => {
                    let frame = self.encode(push, peer.locale);
                    written = Some((peer.locale, frame.clone()));
                    frame
                }
            };
            taken += usize::from(peer.outbound.push(push, frame));
        }
        taken
    }
}

#[async_trait]
impl Pusher for Registry {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        let mut peers = self.peers(to);
        peers.retain(|peer| Some(peer.conn) != except);
        Reach { connections: self.spread(&peers, push) }
    }

    async fn push_to_consoles(&self, push: &Push) {
        let peers: Vec<_> = self.consoles.iter().map(|entry| Arc::clone(entry.value())).collect();
        self.spread(&peers, push);
    }
}

#[async_trait]
impl Connections for Registry {
    fn positions(&self) -> Vec<Position> {
        let of_peer = |peer: &Peer| {
            let (conn, person) = (peer.conn, peer.person.clone());
            let served = peer.outbound.served();
            served.into_iter().map(move |(session_id, written)| Position {
                conn,
                person: person.clone(),
                session_id,
                written,
            })
        };
        self.connections.iter().flat_map(|entry| of_peer(entry.value())).collect()
    }

    fn people(&self) -> Vec<(ConnId, Person)> {
        let of_entry = |peer: &Peer| (peer.conn, peer.person.clone());
        self.connections.iter().map(|entry| of_entry(entry.value())).collect()
    }

    fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    fn count(&self, person: &Person) -> usize {
        self.people.get(person).map_or(0, |peers| peers.len())
    }

    async fn push_one(&self, conn: ConnId, push: &Push) {
        let peer = self.connections.get(&conn).map(|entry| Arc::clone(entry.value()));
        if let Some(peer) = peer {
            self.spread(&[peer], push);
        }
    }

    async fn push_to_supervisors(&self, push: &Push, except: &[Person]) {
        let peers = self.consoles.iter().map(|entry| Arc::clone(entry.value()));
        let peers: Vec<_> =
            peers.filter(|peer| peer.is_supervisor && !except.contains(&peer.person)).collect();
        self.spread(&peers, push);
    }
}

#[cfg(test)]
mod interleavings;
