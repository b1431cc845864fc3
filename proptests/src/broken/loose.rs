//! Memory without constraints: it writes whatever a verdict says, as a table without its unique
//! indexes would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, SessionId, StoreFault, UserId};
use kefu_desk::Stores;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendTarget, AppendVerdict, Message,
    MessageStore, Tip, Window,
};
use kefu_session::{OpenDecision, OpenVerdict, Opened, Session, SessionStore};

use crate::passing::{Altered, PassingMessages, PassingSessions};

/// `stores` with what openings and sends write kept without constraints.
#[must_use]
pub fn loosened(stores: &Stores) -> Stores {
    let inner = Arc::clone(&stores.sessions);
    let sessions: Arc<dyn SessionStore> =
        Arc::new(Altered(LooseSessions { rows: Mutex::default(), inner }));
    let messages = LooseMessages {
        rows: Mutex::default(),
        sessions: Arc::clone(&sessions),
        inner: Arc::clone(&stores.messages),
    };
    Stores { sessions, messages: Arc::new(Altered(messages)), ..stores.clone() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sessions as opened. What else happens to a session is not known here.
struct LooseSessions {
    rows: Mutex<Vec<Session>>,
    inner: Arc<dyn SessionStore>,
}

impl LooseSessions {
    fn put(rows: &mut Vec<Session>, session: &Session) {
        match rows.iter_mut().find(|row| row.id == session.id) {
            Some(row) => *row = session.clone(),
            None => rows.push(session.clone()),
        }
    }
}

#[async_trait]
impl PassingSessions for LooseSessions {
    fn inner(&self) -> &dyn SessionStore {
        self.inner.as_ref()
    }

    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        let mut rows = lock(&self.rows);
        let open = rows.iter().rfind(|row| row.user.user_id == *user && row.is_open());
        let (session, created, events) = match decide(open, ids) {
            OpenVerdict::Keep(session) | OpenVerdict::Refresh(session) => {
                (session, false, Vec::new())
            }
            OpenVerdict::Insert(session, events) => (session, true, events),
        };
        Self::put(&mut rows, &session);
        Ok(Opened { session, created, events })
    }

    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
        Ok(lock(&self.rows).iter().find(|row| row.id == id).cloned())
    }

    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        let rows = lock(&self.rows);
        Ok(rows.iter().rfind(|row| row.user.user_id == *user && row.is_open()).cloned())
    }
}

#[derive(Default)]
struct Rows {
    messages: Vec<Message>,
    tips: BTreeMap<SessionId, Tip>,
}

/// Messages as sent. Receipts are not known here.
struct LooseMessages {
    rows: Mutex<Rows>,
    sessions: Arc<dyn SessionStore>,
    inner: Arc<dyn MessageStore>,
}

impl LooseMessages {
    async fn targets(&self, batch: &[AppendRequest]) -> Result<AppendSnapshot, StoreFault> {
        let mut snapshot = AppendSnapshot::default();
        for request in batch {
            let session = match &request.target {
                AppendTarget::Session(id) => self.sessions.find(*id).await?,
                AppendTarget::OpenSessionOf(user) => {
                    let open = self.sessions.find_open(user).await?;
                    snapshot.open.extend(open.iter().map(|open| (user.clone(), open.id)));
                    open
                }
            };
            snapshot.sessions.extend(session.map(|session| (session.id, session)));
        }
        Ok(snapshot)
    }
}

#[async_trait]
impl PassingMessages for LooseMessages {
    fn inner(&self) -> &dyn MessageStore {
        self.inner.as_ref()
    }

    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let mut snapshot = self.targets(batch).await?;
        let mut rows = lock(&self.rows);
        for session in snapshot.sessions.values_mut() {
            if let Some(tip) = rows.tips.get(&session.id) {
                session.last_seq = tip.last_seq;
                session.last_msg_id = Some(tip.last_msg_id);
                session.version = tip.version;
            }
        }
        let asked = |message: &Message| {
            batch.iter().any(|request| {
                request.sender == message.sender && request.client_msg_id == message.client_msg_id
            })
        };
        snapshot.stored = rows.messages.iter().filter(|message| asked(message)).cloned().collect();
        let verdict = decide(&snapshot, batch, ids);
        rows.messages.extend(verdict.messages.iter().map(|message| message.as_ref().clone()));
        rows.tips.extend(verdict.tips.iter().map(|tip| (tip.session_id, *tip)));
        Ok(verdict)
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        Ok(lock(&self.rows).messages.iter().find(|message| message.msg_id == id).cloned())
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        // A page that never ends would hang on positions given twice: everything is one page.
        let after = match window {
            Window::After(seq) => seq,
            Window::Before(_) => return self.inner.history(session, window, limit).await,
        };
        let rows = lock(&self.rows);
        let above = |message: &&Message| message.session_id == session && message.seq > after;
        let mut items: Vec<_> = rows.messages.iter().filter(above).cloned().collect();
        items.sort_by_key(|message| (message.seq, message.msg_id));
        Ok(Page { items, has_more: false })
    }
}
