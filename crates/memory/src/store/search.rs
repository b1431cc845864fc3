//! [`SessionSearch`].

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_core::{Page, PageLimit, SessionId, StoreFault, Timestamp};
use kefu_messaging::{
    Message, OpenedSession, Progress, SearchEntry, SessionFilter, SessionSearch, Side, Unindexed,
    Whose,
};
use kefu_session::Session;

use crate::MemoryWorld;

#[async_trait]
impl SessionSearch for MemoryWorld {
    async fn list(
        &self,
        filter: &SessionFilter,
        before: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Session>, StoreFault> {
        let tables = self.begin().await;
        let fits = |session: &&Session| {
            let found = filter.query.as_ref().is_none_or(|q| tables.search.fits(session.id, q));
            is_of(session, &filter.whose) && found
        };
        let found = tables.sessions.newest_below(before).filter(fits).cloned();
        let found = found.take(limit.get() as usize + 1).collect();
        Ok(Page::from_overfetched(found, limit))
    }

    async fn list_last(
        &self,
        ids: &[SessionId],
    ) -> Result<BTreeMap<SessionId, Message>, StoreFault> {
        let tables = self.begin().await;
        let last = |id: &SessionId| {
            let session = tables.sessions.find(*id)?;
            let message = tables.messages.find(session.last_msg_id?)?;
            Some((*id, message.clone()))
        };
        Ok(ids.iter().filter_map(last).collect())
    }

    async fn list_opened(&self, since: Timestamp) -> Result<Vec<OpenedSession>, StoreFault> {
        let tables = self.begin().await;
        let newest = tables.sessions.newest_below(None);
        let opened = newest.filter(|session| session.started_at >= since).map(|session| {
            let mut messages = tables.messages.range(session.id, ..);
            let reply = messages.find(|message| message.sender.side() == Side::Agent);
            OpenedSession {
                session_id: session.id,
                at: session.started_at,
                first_reply: reply.map(|message| message.create_time),
            }
        });
        let mut opened: Vec<_> = opened.collect();
        opened.reverse();
        Ok(opened)
    }

    async fn list_behind(
        &self,
        looked_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Unindexed>, StoreFault> {
        let tables = self.begin().await;
        let behind = tables.search.pending().filter_map(|progress| {
            let session = tables.sessions.find(progress.session_id)?;
            let grown = session.last_seq > progress.upto && progress.at < looked_before;
            let is_behind = !session.is_open() || grown;
            is_behind.then(|| Unindexed { session: session.clone(), upto: progress.upto })
        });
        Ok(behind.take(limit as usize).collect())
    }

    async fn write(
        &self,
        entries: &[SearchEntry],
        progress: &[Progress],
    ) -> Result<(), StoreFault> {
        self.begin().await.search.write(entries, progress);
        Ok(())
    }
}

fn is_of(session: &Session, whose: &Whose) -> bool {
    match whose {
        Whose::User(user) => session.user.user_id == *user,
        Whose::UserWith(user, admin) => {
            session.user.user_id == *user && session.admin_id.as_ref() == Some(admin)
        }
        Whose::Agent(admin) => session.admin_id.as_ref() == Some(admin),
        Whose::All => true,
    }
}
