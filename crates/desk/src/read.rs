//! Reading: history, the line, colleagues, a session's view (A3).

use kefu_assignment::DecisionRecord;
use kefu_core::{Caller, Page, PageLimit, SessionId, StoreFault};
use kefu_messaging::{Message, Window};
use kefu_presence::Agent;
use kefu_session::{Access, Refusal, Session, Status, access};

use crate::watch::only_supervisors;
use crate::{Desk, DeskError, QueueNews, SessionView};

impl Desk {
    /// A page of a session's history.
    ///
    /// # Errors
    /// `not_found` unless the caller may read it (A3).
    pub async fn history(
        &self,
        caller: &Caller,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, DeskError> {
        self.readable(caller, session).await?;
        Ok(self.stores.messages.history(session, window, limit).await?)
    }

    /// The front of the waiting line, for consoles.
    ///
    /// # Errors
    /// `forbidden` for users.
    pub async fn queue_list(&self, caller: &Caller) -> Result<QueueNews, DeskError> {
        not_for_users(caller)?;
        Ok(self.news.list().await?)
    }

    /// Every decision about a session: why it went where it went, the oldest first.
    ///
    /// # Errors
    /// `forbidden` unless a supervisor, `not_found`.
    pub async fn explain(
        &self,
        caller: &Caller,
        session: SessionId,
    ) -> Result<Vec<DecisionRecord>, DeskError> {
        only_supervisors(caller)?;
        self.find(session).await?;
        Ok(self.stores.assignments.list_records(session).await?)
    }

    /// The agents who are online, for the transfer dialog.
    ///
    /// # Errors
    /// `forbidden` for users.
    pub async fn agent_list(&self, caller: &Caller) -> Result<Vec<Agent>, DeskError> {
        not_for_users(caller)?;
        Ok(self.stores.agents.list_online().await?)
    }

    pub(crate) async fn readable(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Session, DeskError> {
        let session = self.find(id).await?;
        let owns_open = self.owns_open_session_of(caller, &session).await?;
        access(&session, caller, Access::Read, owns_open)?;
        Ok(session)
    }

    /// Whether an agent owns the open session of an ended session's user, which opens that user's
    /// past for reading while it lasts (A3).
    async fn owns_open_session_of(
        &self,
        caller: &Caller,
        session: &Session,
    ) -> Result<bool, DeskError> {
        let Caller::Agent(agent) = caller else { return Ok(false) };
        if session.status != Status::Ended {
            return Ok(false);
        }
        let open = self.stores.sessions.find_open(&session.user.user_id).await?;
        Ok(open.is_some_and(|open| open.is_owned_by(&agent.admin_id)))
    }

    pub(crate) async fn find(&self, id: SessionId) -> Result<Session, DeskError> {
        Ok(self.stores.sessions.find(id).await?.ok_or(Refusal::NotFound)?)
    }

    pub(crate) async fn view(&self, session: Session) -> Result<SessionView, DeskError> {
        let agent = match &session.admin_id {
            Some(admin) => self.stores.agents.find(admin).await?.map(|agent| agent.info),
            None => None,
        };
        let place = match session.status {
            Status::Waiting => self.stores.line.place(session.id).await?,
            Status::Active | Status::Ended => None,
        };
        let agents_online = self.agents_online().await?;
        Ok(SessionView { session, agent, place, agents_online })
    }

    pub(crate) async fn agents_online(&self) -> Result<bool, StoreFault> {
        Ok(self.stores.agents.list_online().await?.iter().any(|agent| agent.live))
    }
}

pub(crate) fn not_for_users(caller: &Caller) -> Result<(), Refusal> {
    if caller.user_id().is_some() { Err(Refusal::Forbidden) } else { Ok(()) }
}
