//! Talking: send, acknowledge, typing, upload.

use bytes::Bytes;
use kefu_core::text::check_message_text;
use kefu_core::{Caller, ClientMsgId, ConnId, MsgId, SessionId, TraceId};
use kefu_messaging::{
    AppendRequest, AppendTarget, Draft, PendingSend, Receipt, ReceiptRequest, Reported, Sender,
};
use kefu_session::{Access, Refusal, Session, access, role_allows};
use kefu_upload::StoredUpload;

use crate::{Desk, DeskError};

/// A `chat.message.send`.
#[derive(Debug, Clone)]
pub struct SendRequest {
    /// The session; a user may leave it out.
    pub session_id: Option<SessionId>,
    /// The idempotency key (T2).
    pub client_msg_id: ClientMsgId,
    /// What it says.
    pub draft: Draft,
    /// The connection's own session, to pick the writer's shard.
    pub open_session: Option<SessionId>,
}

impl Desk {
    /// Queues a send, at once and in call order; the future is its answer, given after the commit.
    ///
    /// # Errors
    /// What frame rules and role say at once; the rest comes with the answer.
    pub fn send(
        &self,
        caller: &Caller,
        conn: Option<ConnId>,
        request: SendRequest,
        trace: &TraceId,
    ) -> Result<PendingSend, DeskError> {
        let sender = match caller {
            Caller::User(user) => Sender::User(user.user_id.clone()),
            Caller::Agent(agent) => Sender::Agent(agent.admin_id.clone()),
            Caller::Supervisor(_) => return Err(Refusal::Forbidden.into()),
        };
        let target = match (request.session_id, caller) {
            (Some(session), _) => AppendTarget::Session(session),
            (None, Caller::User(user)) => AppendTarget::OpenSessionOf(user.user_id.clone()),
            (None, _) => return Err(Refusal::BadRequest("sessionId is missing").into()),
        };
        if let Draft::Text(text) = &request.draft {
            check_message_text(text, self.config.max_chars)?;
        }
        let open_session = request.open_session;
        let append = AppendRequest {
            target,
            sender,
            client_msg_id: request.client_msg_id,
            draft: request.draft,
            origin: conn,
            trace_id: trace.clone(),
        };
        Ok(self.sends.send(append, open_session)?)
    }

    /// Takes a receiver's report about a message (M3).
    ///
    /// # Errors
    /// `not_found` for a message the caller may not see, `forbidden` for supervisors and for
    /// messages of the caller's own side.
    pub async fn acknowledge(
        &self,
        caller: &Caller,
        origin: Option<ConnId>,
        msg_id: MsgId,
        receipt: Receipt,
        cumulative: bool,
        trace: &TraceId,
    ) -> Result<(), DeskError> {
        let (by, trace_id) = (Reported::By(caller.clone()), Some(trace.clone()));
        let report = ReceiptRequest { by, msg_id, receipt, cumulative, origin, trace_id };
        Ok(self.receipts.report(report).await?)
    }

    /// Relays that the caller types, or no longer does (P3). Never stored.
    ///
    /// # Errors
    /// As [`Access::Talk`] says.
    pub async fn typing(
        &self,
        caller: &Caller,
        conn: ConnId,
        session: SessionId,
        is_typing: bool,
        trace: &TraceId,
    ) -> Result<(), DeskError> {
        let session = self.talkable(caller, session).await?;
        self.typing.report(caller, conn, &session, is_typing, trace);
        Ok(())
    }

    /// The session that an upload by `caller` belongs to: the named one, or the user's open one.
    ///
    /// # Errors
    /// `not_found` without one, `session_closed` after its end, `bad_request` when an agent names none.
    pub async fn upload_target(
        &self,
        caller: &Caller,
        session: Option<SessionId>,
    ) -> Result<SessionId, DeskError> {
        role_allows(caller, Access::Talk)?;
        let id = match (session, caller) {
            (Some(id), _) => id,
            (None, Caller::User(user)) => {
                let open = self.stores.sessions.find_open(&user.user_id).await?;
                open.ok_or(Refusal::NotFound)?.id
            }
            (None, _) => return Err(Refusal::BadRequest("sessionId is missing").into()),
        };
        Ok(self.talkable(caller, id).await?.id)
    }

    /// Stores a received image for `session`, which [`Self::upload_target`] gave.
    ///
    /// # Errors
    /// What the image checks say; store faults.
    pub async fn upload(
        &self,
        caller: &Caller,
        session: SessionId,
        file: Bytes,
    ) -> Result<StoredUpload, DeskError> {
        Ok(self.uploads.store(session, caller.person(), file).await?)
    }

    async fn talkable(&self, caller: &Caller, id: SessionId) -> Result<Session, DeskError> {
        role_allows(caller, Access::Talk)?;
        let session = self.find(id).await?;
        access(&session, caller, Access::Talk, false)?;
        if session.is_open() { Ok(session) } else { Err(Refusal::SessionClosed.into()) }
    }
}
