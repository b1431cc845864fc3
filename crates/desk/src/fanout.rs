//! Who is told what after a commit: the one place where events become pushes (A2).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kefu_assignment::{Drain, Origin};
use kefu_core::{AdminId, ConnId, ErrorCode, MsgId, PageLimit, Person, SessionId, UserId};
use kefu_events::{Envelope, Event, Handler, HandlerError, Recent};
use kefu_messaging::{Delivery, Fresh, Message, Parties, Push, RemovalReason};
use kefu_session::Session;

use crate::board::Board;
use crate::news::News;
use crate::owners::Owners;
use crate::serve::offer;
use crate::turns::Turns;
use crate::typing::Typing;
use crate::watch::Watchers;
use crate::{Connections, DeskError, Stores};

/// Turns committed events into pushes. The same event may come by several ways, from this node and from
/// others, early and late: each is told once (N2), and a stale one takes back nothing that is newer.
pub(crate) struct Fanout {
    pub(crate) stores: Stores,
    pub(crate) connections: Arc<dyn Connections>,
    delivery: Delivery,
    news: Arc<News>,
    typing: Typing,
    turns: Arc<Turns>,
    pub(crate) watchers: Arc<Watchers>,
    board: Arc<Board>,
    told: Mutex<Told>,
}

/// What was told lately. Apart, so that many messages do not make changes forgotten.
#[derive(Default)]
struct Told {
    messages: Recent,
    changes: Recent,
    /// Messages that came to their agent with the session.
    brought: Recent<MsgId>,
}

impl Told {
    fn of(&mut self, event: &Event) -> &mut Recent {
        match event {
            Event::MessageStored { .. } => &mut self.messages,
            Event::SessionOpened { .. }
            | Event::SessionAssigned { .. }
            | Event::SessionRequeued { .. }
            | Event::SessionEnded { .. }
            | Event::SessionRated { .. }
            | Event::AgentChanged { .. }
            | Event::NoteAdded { .. } => &mut self.changes,
        }
    }
}

impl Fanout {
    pub(crate) const NAME: &'static str = "fanout";

    pub(crate) fn new(
        stores: Stores,
        connections: Arc<dyn Connections>,
        delivery: Delivery,
        news: Arc<News>,
        typing: Typing,
        turns: Arc<Turns>,
        (watchers, board): (Arc<Watchers>, Arc<Board>),
    ) -> Self {
        Self {
            stores,
            connections,
            delivery,
            news,
            typing,
            turns,
            watchers,
            board,
            told: Mutex::default(),
        }
    }

    /// Tells the people of this node, unless they were told before.
    pub(crate) async fn tell(&self, envelope: &Envelope) -> Result<(), DeskError> {
        let _turn = self.turn(&envelope.event).lock().await;
        if self.told().of(&envelope.event).contains(envelope.id) {
            return Ok(());
        }
        self.tell_anew(envelope).await?;
        self.told().of(&envelope.event).insert(envelope.id);
        Ok(())
    }

    async fn tell_anew(&self, envelope: &Envelope) -> Result<(), DeskError> {
        let origin = envelope.attachment::<Origin>().and_then(|origin| origin.0);
        self.board.note(envelope);
        match &envelope.event {
            Event::SessionOpened { .. } => self.news.touch(),
            Event::SessionRated { session_id, .. } => self.rated(*session_id).await?,
            Event::SessionAssigned { session_id, user_id, admin_id, from, version, .. } => {
                self.owners().note(*session_id, *version, Some(admin_id));
                if let Some(from) = from {
                    self.typing.session_moved(*session_id, *version, Some(admin_id.clone()));
                    let reason = RemovalReason::Transferred(admin_id.clone());
                    self.remove(from, *session_id, *version, reason).await;
                }
                self.news.touch();
                let of_here = self.holds_user(user_id) || self.holds_agent(admin_id);
                if of_here && !self.has_moved_on(*session_id, *version) {
                    self.assigned(*session_id, admin_id, *version, origin).await?;
                }
            }
            Event::SessionRequeued { session_id, user_id, from, reason, version } => {
                self.owners().note(*session_id, *version, None);
                self.typing.session_moved(*session_id, *version, None);
                self.remove(from, *session_id, *version, RemovalReason::Requeued).await;
                // It no longer waits: what was told since holds.
                if !self.has_moved_on(*session_id, *version) {
                    let push = Push::Requeued { session_id: *session_id, reason: reason.as_str() };
                    self.push_user(user_id, &push, None).await;
                    self.news.forget(*session_id);
                }
            }
            Event::SessionEnded { session_id, user_id, admin_id, version, .. } => {
                // A message stored before the end is visible to both, however late its word comes (S2).
                self.owners().note(*session_id, *version, admin_id.as_ref());
                self.typing.session_ended(*session_id, *version);
                self.ended(*session_id, user_id, admin_id.as_ref(), origin).await?;
            }
            Event::MessageStored { session_id, msg_id, user_id, admin_id, version, .. } => {
                let owner = self.owners().owner(*session_id, *version, admin_id.clone());
                let parties = Parties { session_id: *session_id, user: user_id.clone(), owner };
                self.message(envelope, *msg_id, &parties).await?;
            }
            Event::AgentChanged { admin_id, .. } => {
                self.agent_changed(admin_id, origin).await?;
                self.news.touch();
            }
            Event::NoteAdded { note_id, .. } => self.noted(envelope, *note_id).await?,
        }
        self.show_watchers(&envelope.event).await
    }

    /// The user learns who serves them, and who that is gets the session (Z5).
    async fn assigned(
        &self,
        session: SessionId,
        admin: &AdminId,
        version: i64,
        origin: Option<ConnId>,
    ) -> Result<(), DeskError> {
        let Some(session) = self.stores.sessions.find(session).await? else { return Ok(()) };
        // It has moved on: a later event tells the rest.
        if session.version > version && !session.is_owned_by(admin) {
            return Ok(());
        }
        if let Some(agent) = self.stores.agents.find(admin).await? {
            let push = Push::Assigned { session_id: session.id, agent: agent.info };
            self.push_user(&session.user.user_id, &push, None).await;
        }
        if !self.holds_agent(admin) {
            return Ok(());
        }
        let offer = Push::SessionNew(offer(&self.stores, &session).await?);
        self.push_agent(admin, &offer, origin).await;
        self.bring_waiting_messages(&session, admin).await
    }

    /// What the visitor wrote while nobody was there is pushed to the new owner.
    async fn bring_waiting_messages(
        &self,
        session: &Session,
        admin: &AdminId,
    ) -> Result<(), DeskError> {
        let person = Person::Agent(admin.clone());
        let messages = &self.stores.messages;
        let page = messages.list_undelivered(&person, Some(session.id), PageLimit::MAX).await?;
        let parties = Parties::from(session);
        for message in page.items {
            self.told().brought.insert(message.msg_id);
            self.delivery.redeliver(message, &parties).await;
        }
        Ok(())
    }

    async fn ended(
        &self,
        session: SessionId,
        user: &UserId,
        admin: Option<&AdminId>,
        origin: Option<ConnId>,
    ) -> Result<(), DeskError> {
        self.news.forget(session);
        if !self.holds_user(user) && !admin.is_some_and(|admin| self.holds_agent(admin)) {
            return Ok(());
        }
        let Some(session) = self.stores.sessions.find(session).await? else { return Ok(()) };
        let push = ended_push(&session);
        self.push_user(user, &push, origin).await;
        if let Some(admin) = admin {
            self.push_agent(admin, &push, origin).await;
        }
        Ok(())
    }

    /// Whoever served last sees the rating as it is by now (S3).
    async fn rated(&self, session: SessionId) -> Result<(), DeskError> {
        let Some(session) = self.stores.sessions.find(session).await? else { return Ok(()) };
        if let (Some(admin), Some(rating)) = (&session.admin_id, session.rating) {
            let push = Push::Rated { session_id: session.id, rating };
            self.push_agent(admin, &push, None).await;
        }
        Ok(())
    }

    /// From the fast path the message is at hand; from the outbox it is read back, and skipped if a
    /// device has it already (2.5).
    async fn message(
        &self,
        envelope: &Envelope,
        msg_id: MsgId,
        parties: &Parties,
    ) -> Result<(), DeskError> {
        if let Some(fresh) = envelope.attachment::<Fresh>() {
            self.deliver(&fresh, parties).await;
            return Ok(());
        }
        let Some(message) = self.stores.messages.find(msg_id).await? else { return Ok(()) };
        if message.status.is_delivered() {
            self.typing.message_sent(&message);
            self.overheard(&Arc::new(message)).await;
            return Ok(());
        }
        let Some(session) = self.stores.sessions.find(message.session_id).await? else {
            return Ok(());
        };
        let fresh = Fresh { message: Arc::new(message), origin: None };
        self.deliver(&fresh, &Parties::from(&session)).await;
        Ok(())
    }

    /// A message that was stored just before its session was told to the agent came with it: no
    /// connection is pushed it twice.
    async fn deliver(&self, fresh: &Fresh, parties: &Parties) {
        self.typing.message_sent(&fresh.message);
        self.overheard(&fresh.message).await;
        let was_brought = self.told().brought.contains(fresh.message.msg_id);
        if was_brought {
            self.delivery.echo(fresh, parties).await;
        } else {
            self.delivery.deliver(fresh, parties).await;
        }
    }

    /// Those who look on see every message, whoever has it already.
    async fn overheard(&self, message: &Arc<Message>) {
        self.board.note_message(message);
        let push = Push::Message { message: Arc::clone(message), attempt: 1, own: false };
        self.watchers.tell(message.session_id, &push).await;
    }

    async fn agent_changed(
        &self,
        admin: &AdminId,
        origin: Option<ConnId>,
    ) -> Result<(), DeskError> {
        if !self.holds_agent(admin) {
            return Ok(());
        }
        let Some(agent) = self.stores.agents.find(admin).await? else { return Ok(()) };
        let push = Push::AgentStatus {
            online: agent.availability == kefu_presence::Availability::Online,
            max_sessions: agent.max_sessions,
            active_sessions: agent.active_sessions,
        };
        self.push_agent(admin, &push, origin).await;
        Ok(())
    }

    /// Takes a session from an agent who lost it at `version`, unless they have it again by now.
    async fn remove(
        &self,
        admin: &AdminId,
        session_id: SessionId,
        version: i64,
        reason: RemovalReason,
    ) {
        if self.owners().since(session_id, version) == Some(Some(admin)) {
            return;
        }
        self.push_agent(admin, &Push::SessionRemoved { session_id, reason }, None).await;
    }

    async fn push_user(&self, user: &UserId, push: &Push, except: Option<ConnId>) {
        self.connections.push(&Person::User(user.clone()), push, except).await;
    }

    async fn push_agent(&self, admin: &AdminId, push: &Push, except: Option<ConnId>) {
        self.connections.push(&Person::Agent(admin.clone()), push, except).await;
    }

    fn has_moved_on(&self, session: SessionId, version: i64) -> bool {
        self.owners().since(session, version).is_some()
    }

    /// Who connects from now on reads what is committed.
    fn holds_user(&self, user: &UserId) -> bool {
        self.connections.holds(&Person::User(user.clone()))
    }

    fn holds_agent(&self, admin: &AdminId) -> bool {
        self.connections.holds(&Person::Agent(admin.clone()))
    }

    fn turn(&self, event: &Event) -> &tokio::sync::Mutex<()> {
        match event {
            Event::SessionOpened { session_id, .. }
            | Event::SessionAssigned { session_id, .. }
            | Event::SessionRequeued { session_id, .. }
            | Event::SessionEnded { session_id, .. }
            | Event::SessionRated { session_id, .. }
            | Event::MessageStored { session_id, .. }
            | Event::NoteAdded { session_id, .. } => self.turns.of(session_id),
            Event::AgentChanged { admin_id, .. } => self.turns.of(admin_id),
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, Owners> {
        self.turns.owners()
    }
}

/// `chat.session.ended` of a session.
pub(crate) fn ended_push(session: &Session) -> Push {
    Push::Ended {
        session_id: session.id,
        ended_by: session.ended_by.clone(),
        time: session.ended_at.unwrap_or(session.started_at),
    }
}

#[async_trait]
impl Handler for Fanout {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        match self.tell(envelope).await {
            Ok(()) => Ok(()),
            // The same again would fail again and hold up everybody behind it. What is stored is not
            // lost: connecting reads it, and healing finds what it can (M4, M5).
            Err(error) if error.code() == ErrorCode::Internal => {
                tracing::error!(event_id = %envelope.id, %error, "event cannot be told");
                Ok(())
            }
            Err(error) => Err(HandlerError { reason: error.to_string() }),
        }
    }
}

/// Starts a pass on every event that can create work or capacity (Z3).
pub(crate) struct DrainOnEvent {
    drain: Arc<Drain>,
}

impl DrainOnEvent {
    pub(crate) const NAME: &'static str = "drain";

    pub(crate) const fn new(drain: Arc<Drain>) -> Self {
        Self { drain }
    }
}

#[async_trait]
impl Handler for DrainOnEvent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        match &envelope.event {
            Event::SessionOpened { .. }
            | Event::SessionRequeued { .. }
            | Event::SessionEnded { .. }
            | Event::SessionAssigned { from: Some(_), .. }
            | Event::AgentChanged { .. } => {
                self.drain.run_for(&envelope.trace_id).await?;
                Ok(())
            }
            Event::SessionAssigned { from: None, .. }
            | Event::SessionRated { .. }
            | Event::MessageStored { .. }
            | Event::NoteAdded { .. } => Ok(()),
        }
    }
}
