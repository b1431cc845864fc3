//! One thing at a time about one session on this node, so that nobody is pushed what another task has
//! just taken from them (A3).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kefu_core::{ConnId, Person, SessionId};
use kefu_messaging::{Parties, Push, Pusher, Reach, Side};
use kefu_session::Session;

use crate::owners::Owners;

/// Things of one session or agent are done one at a time; so many of them at once.
const TURNS: usize = 64;

/// The turns, and who owns what by the changes told here. Whoever reads a row and pushes by it takes the
/// session's turn in between and looks here: the row may be old by then.
pub(crate) struct Turns {
    turns: Vec<tokio::sync::Mutex<()>>,
    owners: Mutex<Owners>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            turns: std::iter::repeat_with(tokio::sync::Mutex::default).take(TURNS).collect(),
            owners: Mutex::default(),
        }
    }

    /// The turn of a session or an agent. Held from the look at `owners` to the push.
    pub(crate) fn of(&self, key: &impl Hash) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let turns = self.turns.len() as u64;
        &self.turns[usize::try_from(hasher.finish() % turns).unwrap_or(0)]
    }

    pub(crate) fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes in the session's turn, unless `to` lost the session, as far as this node was told; says
    /// whether it did.
    pub(crate) async fn unless_barred(
        &self,
        session: SessionId,
        to: &Person,
        push: impl Future<Output = ()> + Send,
    ) -> bool {
        // A user never loses a session, so there is nothing to wait for.
        if matches!(to, Person::User(_)) {
            push.await;
            return true;
        }
        let _turn = self.of(&session).lock().await;
        let is_barred = self.owners().bar(session, to);
        if !is_barred {
            push.await;
        }
        !is_barred
    }
}

/// Pushes by rows that were read earlier, in the session's turn and to who has it by then.
pub(crate) struct Fenced {
    pusher: Arc<dyn Pusher>,
    turns: Arc<Turns>,
}

impl Fenced {
    pub(crate) const fn new(pusher: Arc<dyn Pusher>, turns: Arc<Turns>) -> Self {
        Self { pusher, turns }
    }
}

#[async_trait]
impl Pusher for Fenced {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        self.pusher.push(to, push, except).await
    }

    async fn push_to_consoles(&self, push: &Push) {
        self.pusher.push_to_consoles(push).await;
    }

    async fn push_to_side(
        &self,
        session: &Session,
        side: Side,
        push: &Push,
        except: Option<ConnId>,
    ) -> Reach {
        let Parties { user, owner, .. } = Parties::from(session);
        if side == Side::User {
            return self.pusher.push(&Person::User(user), push, except).await;
        }
        let _turn = self.turns.of(&session.id).lock().await;
        let owner = self.turns.owners().owner(session.id, session.version, owner);
        match owner.map(Person::Agent) {
            Some(owner) => self.pusher.push(&owner, push, except).await,
            None => Reach::default(),
        }
    }
}
