//! [`SessionStore`].

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_core::{AdminId, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_session::{
    OpenDecision, OpenVerdict, Opened, Session, SessionDecision, SessionStore, SessionVerdict,
    Updated,
};

use crate::MemoryWorld;

#[async_trait]
impl SessionStore for MemoryWorld {
    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        let mut tables = self.begin().await;
        let open = tables.sessions.find_open(user);
        match decide(open, ids) {
            OpenVerdict::Keep(session) => Ok(opened(session)),
            OpenVerdict::Refresh(session) => {
                check_update(open, &session)?;
                tables.write_session(&session, &[])?;
                Ok(opened(session))
            }
            OpenVerdict::Insert(session, events) => {
                check_insert(tables.sessions.find(session.id), &session, user)?;
                tables.write_session(&session, &events)?;
                Ok(Opened { session, created: true, events })
            }
        }
    }

    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault> {
        let mut tables = self.begin().await;
        let Some(before) = tables.sessions.find(id) else { return Ok(Updated::Missing) };
        match decide(before, ids) {
            SessionVerdict::Keep => Ok(Updated::Kept(before.clone())),
            SessionVerdict::Refuse(refusal) => Ok(Updated::Refused(refusal)),
            SessionVerdict::Write(session, events) => {
                check_update(Some(before), &session)?;
                tables.write_session(&session, &events)?;
                Ok(Updated::Written(session, events))
            }
        }
    }

    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
        Ok(self.begin().await.sessions.find(id).cloned())
    }

    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        Ok(self.begin().await.sessions.find_open(user).cloned())
    }

    async fn find_latest_ended(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        Ok(self.begin().await.sessions.find_latest_ended(user).cloned())
    }

    async fn list_open_after(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<Session>, StoreFault> {
        let tables = self.begin().await;
        Ok(tables.sessions.open_after(after).take(limit as usize).cloned().collect())
    }

    async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault> {
        Ok(self.begin().await.sessions.owned_by(admin).cloned().collect())
    }

    async fn list_tips(&self, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, StoreFault> {
        let tables = self.begin().await;
        let known = ids.iter().filter_map(|id| tables.sessions.find(*id));
        Ok(known.map(|session| (session.id, session.last_seq)).collect())
    }
}

const fn opened(session: Session) -> Opened {
    Opened { session, created: false, events: Vec::new() }
}

fn check_insert(
    same_id: Option<&Session>,
    session: &Session,
    user: &UserId,
) -> Result<(), StoreFault> {
    if same_id.is_none() && session.user.user_id == *user {
        Ok(())
    } else {
        Err(StoreFault::internal("a session id is used twice or belongs to another user"))
    }
}

/// What this port may not change belongs to the assignment and message stores.
fn check_update(before: Option<&Session>, after: &Session) -> Result<(), StoreFault> {
    let kept = |before: &Session| {
        before.id == after.id
            && before.user.user_id == after.user.user_id
            && before.status == after.status
            && before.admin_id == after.admin_id
            && before.last_seq == after.last_seq
            && before.last_msg_id == after.last_msg_id
    };
    if before.is_some_and(kept) {
        Ok(())
    } else {
        Err(StoreFault::internal("a session's key, status, owner or tip is changed"))
    }
}
