//! Openings with one mistake (2.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{AdminId, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_desk::Stores;
use kefu_session::{
    OpenDecision, OpenVerdict, Opened, Session, SessionDecision, SessionStore, Updated,
};
use kefu_testkit::World;

use crate::backend::Backend;
use crate::broken::meeting::Meeting;

/// What goes wrong on an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMistake {
    /// Nothing: shows that it is the mistake that is caught, not the wrapper.
    Nothing,
    /// Two openings decide on what they read before either wrote (S1).
    DecidesOutsideLock,
    /// The open session is not looked up (S1).
    ForgetsOpen,
    /// A new session is not announced (S1).
    AnnouncesNothing,
}

/// A session store that makes one mistake.
pub struct CarelessSessions {
    inner: Arc<dyn SessionStore>,
    mistake: OpenMistake,
    meeting: Meeting,
}

impl CarelessSessions {
    /// A world on a backend of its own whose openings make `mistake`.
    pub async fn world<B: Backend>(mistake: OpenMistake) -> (B, World) {
        let backend = B::start().await;
        let stores = backend.unconstrained().await;
        let inner = Arc::clone(&stores.sessions);
        let sessions = Arc::new(Self { inner, mistake, meeting: Meeting::default() });
        let world = World::new(Stores { sessions, ..stores });
        (backend, world)
    }
}

fn silenced(verdict: OpenVerdict) -> OpenVerdict {
    match verdict {
        OpenVerdict::Insert(session, _) => OpenVerdict::Insert(session, Vec::new()),
        kept @ (OpenVerdict::Keep(_) | OpenVerdict::Refresh(_)) => kept,
    }
}

#[async_trait]
impl SessionStore for CarelessSessions {
    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        match self.mistake {
            OpenMistake::Nothing => self.inner.open(user, decide, ids).await,
            OpenMistake::DecidesOutsideLock => {
                let old = self.inner.find_open(user).await?;
                self.meeting.meet().await;
                self.inner.open(user, &|_, ids| decide(old.as_ref(), ids), ids).await
            }
            OpenMistake::ForgetsOpen => {
                self.inner.open(user, &|_, ids| decide(None, ids), ids).await
            }
            OpenMistake::AnnouncesNothing => {
                self.inner.open(user, &|open, ids| silenced(decide(open, ids)), ids).await
            }
        }
    }

    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault> {
        self.inner.update(id, decide, ids).await
    }

    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
        self.inner.find(id).await
    }

    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        self.inner.find_open(user).await
    }

    async fn find_latest_ended(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        self.inner.find_latest_ended(user).await
    }

    async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault> {
        self.inner.list_owned(admin).await
    }

    async fn list_tips(&self, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, StoreFault> {
        self.inner.list_tips(ids).await
    }
}
