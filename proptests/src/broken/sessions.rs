//! Openings with one mistake (2.2).

use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{IdSource, StoreFault, UserId};
use kefu_desk::Stores;
use kefu_session::{OpenDecision, OpenVerdict, Opened, SessionStore};
use kefu_testkit::World;

use crate::backend::Backend;
use crate::broken::meeting::Meeting;
use crate::passing::{Altered, PassingSessions};

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
        let stores = match mistake {
            OpenMistake::Nothing | OpenMistake::AnnouncesNothing => backend.stores(),
            // Else the index would stand in for the rule.
            OpenMistake::DecidesOutsideLock | OpenMistake::ForgetsOpen => {
                backend.unconstrained().await
            }
        };
        let world = World::new(Self::over(stores, mistake));
        (backend, world)
    }

    /// `stores` whose openings make `mistake`.
    #[must_use]
    pub fn over(stores: Stores, mistake: OpenMistake) -> Stores {
        let inner = Arc::clone(&stores.sessions);
        let careless = Self { inner, mistake, meeting: Meeting::default() };
        Stores { sessions: Arc::new(Altered(careless)), ..stores }
    }
}

fn silenced(verdict: OpenVerdict) -> OpenVerdict {
    match verdict {
        OpenVerdict::Insert(session, _) => OpenVerdict::Insert(session, Vec::new()),
        kept @ (OpenVerdict::Keep(_) | OpenVerdict::Refresh(_)) => kept,
    }
}

#[async_trait]
impl PassingSessions for CarelessSessions {
    fn inner(&self) -> &dyn SessionStore {
        self.inner.as_ref()
    }

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
}
