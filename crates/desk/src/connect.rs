//! Connecting, resuming and leaving (S1, M4, P1, Z7).

use std::collections::BTreeMap;

use kefu_core::{
    AgentInfo, Caller, ConnId, IdSource, Page, PageLimit, Person, Seq, SessionId, StoreFault,
    TraceId, UserInfo,
};
use kefu_messaging::{Message, Side, Window};
use kefu_presence::{Agent, Lease};
use kefu_queue::Place;
use kefu_session::{Session, SessionVerdict, Status, Updated, decide_open, decide_refresh};

use crate::serve::note;
use crate::{Desk, DeskError};

/// What the visitor wants of a connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Talk to somebody: opens a session unless one is open.
    Consult,
    /// Go on: never opens one.
    Resume,
}

/// A `chat.connect`, its token verified.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    /// What a visitor wants.
    pub intent: Intent,
    /// Where a visitor comes from.
    pub source: String,
    /// The positions the client has: for a visitor of one session, for an agent of each.
    pub positions: BTreeMap<SessionId, Seq>,
}

/// A session with what a client is told besides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub session: Session,
    /// Its owner; after the end the agent recorded then.
    pub agent: Option<AgentInfo>,
    /// Its place while it waits.
    pub place: Option<Place>,
    /// Whether any agent is online.
    pub agents_online: bool,
}

/// One of an agent's open sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedSession {
    /// The session.
    pub view: SessionView,
    /// The visitor's messages not yet read.
    pub unread_count: u32,
    /// A colleague's words, if it came by a transfer.
    pub note: Option<String>,
}

/// What `chat.connected` carries.
#[derive(Debug, Clone)]
pub struct ConnectAnswer {
    /// The visitor's open session, if any.
    pub session_id: Option<SessionId>,
    /// The visitor's open session, else the latest ended one.
    pub session: Option<SessionView>,
    /// The agent, with the availability chosen earlier, which connecting never changes (Z7).
    pub agent: Option<Agent>,
    /// An agent's open sessions.
    pub owned: Vec<OwnedSession>,
    /// Messages, oldest first, at most the resume page (CC-09).
    pub unread: Vec<Message>,
    /// Whether more is to be pulled by history.
    pub has_more: bool,
    /// Up to which position the client has each of its sessions after this answer (M5). Sessions
    /// with more to pull are absent until it did.
    pub served: BTreeMap<SessionId, Seq>,
}

impl ConnectAnswer {
    const fn empty() -> Self {
        Self {
            session_id: None,
            session: None,
            agent: None,
            owned: Vec::new(),
            unread: Vec::new(),
            has_more: false,
            served: BTreeMap::new(),
        }
    }
}

impl Desk {
    /// Takes a connection in and tells it where its person stands.
    ///
    /// The caller registers the connection for pushes first and holds them back until the answer is
    /// on its way: so nothing committed in between is missed, and nothing overtakes the answer (S1).
    ///
    /// # Errors
    /// [`DeskError::TooManyConnections`]; store faults. After an error the connection holds no lease.
    pub async fn connect(
        &self,
        caller: &Caller,
        conn: ConnId,
        request: &ConnectRequest,
        trace: &TraceId,
    ) -> Result<ConnectAnswer, DeskError> {
        self.take_lease(&caller.person(), conn).await?;
        let answer = self.answer_connect(caller, request, trace).await;
        if answer.is_err() {
            self.disconnect(caller, conn, trace).await;
        }
        answer
    }

    /// Renews the lease of a connection that gave a sign of life (P1).
    pub async fn renew(&self, person: &Person, conn: ConnId) {
        let renewed = self
            .coordination
            .presence
            .renew(person, &self.lease(conn), self.config.presence_ttl)
            .await;
        if let Err(fault) = renewed {
            tracing::warn!(%fault, "lease not renewed");
        }
    }

    /// Lets a connection go: its typing ends, its lease is released; an agent without another one
    /// is gone from now on (Z7).
    pub async fn disconnect(&self, caller: &Caller, conn: ConnId, trace: &TraceId) {
        self.typing.connection_closed(conn);
        self.look_away(conn).await;
        let person = caller.person();
        let left = match self.coordination.presence.release(&person, &self.lease(conn)).await {
            Ok(left) => left,
            Err(fault) => {
                tracing::warn!(%fault, "lease not released, it will expire");
                return;
            }
        };
        let Caller::Agent(info) = caller else { return };
        if left > 0 {
            return;
        }
        if let Err(error) = self.assignments.vanished(&info.admin_id, trace.clone()).await {
            tracing::warn!(%error, "agent not marked gone, the sweep will");
        }
        self.restate_liveness(info, trace).await;
    }

    /// An agent may have come back while being marked gone; the lease decides (Z7).
    pub(crate) async fn restate_liveness(&self, info: &AgentInfo, trace: &TraceId) {
        let person = Person::Agent(info.admin_id.clone());
        let leases = self.coordination.presence.count(&person).await.unwrap_or(0);
        if leases == 0 {
            return;
        }
        if let Err(error) = self.assignments.connected(info, trace.clone()).await {
            tracing::warn!(%error, "agent not marked live, the sweep will");
        }
    }

    async fn take_lease(&self, person: &Person, conn: ConnId) -> Result<(), DeskError> {
        let limit = self.config.connections_per_person;
        let (lease, ttl) = (self.lease(conn), self.config.presence_ttl);
        let presence = &self.coordination.presence;
        let mut taken = presence.acquire(person, &lease, ttl, limit).await;
        // Leases of this node's name that outlived the process before this one: who comes back to a
        // restarted node is not turned away for them (L2).
        if taken == Ok(None) && self.connections.count(person) <= limit {
            taken = presence.acquire(person, &lease, ttl, usize::MAX).await;
        }
        match taken {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(DeskError::TooManyConnections),
            Err(fault) => {
                // Chat goes on without leases (N5); the next renewal makes one.
                tracing::warn!(%fault, "connection taken in without a lease");
                Ok(())
            }
        }
    }

    fn lease(&self, conn: ConnId) -> Lease {
        Lease { node: self.source.node().clone(), conn }
    }

    async fn answer_connect(
        &self,
        caller: &Caller,
        request: &ConnectRequest,
        trace: &TraceId,
    ) -> Result<ConnectAnswer, DeskError> {
        match caller {
            Caller::User(user) => self.connect_user(user, request, trace).await,
            Caller::Agent(info) => {
                let agent = self.assignments.connected(info, trace.clone()).await?;
                let answer = self.connect_agent(info, request).await?;
                Ok(ConnectAnswer { agent: Some(agent), ..answer })
            }
            Caller::Supervisor(_) => Ok(ConnectAnswer::empty()),
        }
    }

    async fn connect_user(
        &self,
        user: &UserInfo,
        request: &ConnectRequest,
        trace: &TraceId,
    ) -> Result<ConnectAnswer, DeskError> {
        let open = match request.intent {
            Intent::Consult => Some(self.open_session(user, &request.source, trace).await?),
            Intent::Resume => self.resume_session(user).await?,
        };
        let session = match &open {
            Some(session) => Some(session.clone()),
            None => self.stores.sessions.find_latest_ended(&user.user_id).await?,
        };
        let page = self.unread_of_user(user, session.as_ref(), request).await?;
        let mut served = BTreeMap::new();
        if let Some(session) = &open
            && !page.has_more
        {
            served.insert(session.id, reached(session, &page.items));
        }
        if open.as_ref().is_some_and(|session| session.status == Status::Waiting) {
            self.news.touch();
        }
        self.count_as_pushed(&page.items, Side::User);
        let session = match session {
            Some(session) => Some(self.view(session).await?),
            None => None,
        };
        Ok(ConnectAnswer {
            session_id: open.map(|session| session.id),
            session,
            unread: page.items,
            has_more: page.has_more,
            served,
            ..ConnectAnswer::empty()
        })
    }

    /// The user's open session; while it waits, with the balance of the newest token.
    async fn resume_session(&self, user: &UserInfo) -> Result<Option<Session>, StoreFault> {
        let sessions = &self.stores.sessions;
        let ageing = self.config.ageing_per_minute;
        let Some(open) = sessions.find_open(&user.user_id).await? else { return Ok(None) };
        // Most bring nothing new; only the others cost a transaction.
        if matches!(decide_refresh(&open, user, ageing), SessionVerdict::Keep) {
            return Ok(Some(open));
        }
        let decide = |row: &Session, _: &dyn IdSource| decide_refresh(row, user, ageing);
        match sessions.update(open.id, &decide, self.source.ids()).await? {
            Updated::Written(session, _) | Updated::Kept(session) if session.is_open() => {
                Ok(Some(session))
            }
            Updated::Written(..) | Updated::Kept(_) | Updated::Refused(_) | Updated::Missing => {
                Ok(None)
            }
        }
    }

    /// Opens under the lock of Z4.
    async fn open_session(
        &self,
        user: &UserInfo,
        source: &str,
        trace: &TraceId,
    ) -> Result<Session, StoreFault> {
        let context = self.source.context(trace.clone());
        let ageing = self.config.ageing_per_minute;
        let decide = |open: Option<&Session>, ids: &dyn IdSource| {
            decide_open(open, user, source, ageing, &context, ids)
        };
        let open = self.stores.sessions.open(&user.user_id, &decide, self.source.ids());
        let opened = self.under_assign_lock(&user.user_id, open).await;
        let opened = opened.inspect_err(|fault| self.source.recover(fault))?;
        self.source.publish(opened.events);
        Ok(opened.session)
    }

    /// With a position of the answered session exactly what is above it; else what no device
    /// acknowledged (M4).
    async fn unread_of_user(
        &self,
        user: &UserInfo,
        session: Option<&Session>,
        request: &ConnectRequest,
    ) -> Result<Page<Message>, StoreFault> {
        let position = session.and_then(|s| request.positions.get(&s.id).map(|seq| (s.id, *seq)));
        let messages = &self.stores.messages;
        match position {
            Some((id, seq)) => messages.history(id, Window::After(seq), self.resume_page()).await,
            None => {
                let person = Person::User(user.user_id.clone());
                messages.list_undelivered(&person, None, self.resume_page()).await
            }
        }
    }

    async fn connect_agent(
        &self,
        info: &AgentInfo,
        request: &ConnectRequest,
    ) -> Result<ConnectAnswer, DeskError> {
        let sessions = self.stores.sessions.list_owned(&info.admin_id).await?;
        let ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
        let counts = self.stores.messages.count_unread(&ids, Side::Agent).await?;
        let agents_online = self.agents_online().await?;
        let mut answer = ConnectAnswer::empty();
        for session in sessions {
            let page = self.unread_of_agent(info, &session, request).await?;
            if !page.has_more {
                answer.served.insert(session.id, reached(&session, &page.items));
            }
            answer.has_more |= page.has_more;
            answer.unread.extend(page.items);
            let note = note(&self.stores, session.id).await?;
            let unread_count = counts.get(&session.id).copied().unwrap_or(0);
            let view =
                SessionView { session, agent: Some(info.clone()), place: None, agents_online };
            answer.owned.push(OwnedSession { view, unread_count, note });
        }
        cut(&mut answer, self.config.resume_page as usize);
        self.count_as_pushed(&answer.unread, Side::Agent);
        Ok(answer)
    }

    async fn unread_of_agent(
        &self,
        info: &AgentInfo,
        session: &Session,
        request: &ConnectRequest,
    ) -> Result<Page<Message>, StoreFault> {
        let messages = &self.stores.messages;
        if let Some(seq) = request.positions.get(&session.id) {
            return messages.history(session.id, Window::After(*seq), self.resume_page()).await;
        }
        let person = Person::Agent(info.admin_id.clone());
        messages.list_undelivered(&person, Some(session.id), self.resume_page()).await
    }

    /// What the answer carries counts as the first push, so that it is pushed again unless
    /// acknowledged: a client that knows only spec A's fields gets it then (M3).
    fn count_as_pushed(&self, unread: &[Message], reader: Side) {
        let to_reader =
            |message: &&Message| message.sender.side() != reader && !message.status.is_delivered();
        for message in unread.iter().filter(to_reader) {
            self.delivery.handed_over(message.msg_id);
        }
    }

    fn resume_page(&self) -> PageLimit {
        PageLimit::new(self.config.resume_page).unwrap_or(PageLimit::MAX)
    }
}

/// How far an answer serves a session: what was committed when its row was read, and what the page
/// brings right behind that. What was committed in between and is not in the page is still pushed.
fn reached(session: &Session, page: &[Message]) -> Seq {
    let of_session = page.iter().filter(|message| message.session_id == session.id);
    of_session.fold(
        session.last_seq,
        |upto, message| {
            if message.seq == upto.next() { message.seq } else { upto }
        },
    )
}

/// One list over all sessions, oldest first; a session whose messages were cut is not served whole.
fn cut(answer: &mut ConnectAnswer, limit: usize) {
    answer.unread.sort_by_key(|message| message.msg_id);
    if answer.unread.len() <= limit {
        return;
    }
    for message in answer.unread.drain(limit..) {
        answer.served.remove(&message.session_id);
    }
    answer.has_more = true;
}
