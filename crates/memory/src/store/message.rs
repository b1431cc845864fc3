//! [`MessageStore`].

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, Person, SessionId, StoreFault};
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendTarget, AppendVerdict, Draft, Message,
    MessageStore, ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict, Side, Window,
};
use kefu_session::Session;

use crate::MemoryWorld;
use crate::table::Tables;

#[async_trait]
impl MessageStore for MemoryWorld {
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let mut tables = self.begin().await;
        let verdict = decide(&append_snapshot(&tables, batch), batch, ids);
        tables.write_append(&verdict)?;
        Ok(verdict)
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        let mut tables = self.begin().await;
        let verdict = decide(&receipt_snapshot(&tables, batch), batch);
        let changes = || verdict.changes.iter().map(|c| (c.message.msg_id, c.message.status));
        tables.messages.check_statuses(changes())?;
        for (id, status) in changes() {
            tables.messages.put_status(id, status);
        }
        Ok(verdict)
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        Ok(self.begin().await.messages.find(id).cloned())
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let tables = self.begin().await;
        let one_more = limit.get() as usize + 1;
        match window {
            Window::After(seq) => {
                let range = (Bound::Excluded(seq), Bound::Unbounded);
                let above = tables.messages.range(session, range).take(one_more);
                Ok(Page::from_overfetched(above.cloned().collect(), limit))
            }
            Window::Before(seq) => {
                let below = tables.messages.range(session, ..seq).rev().take(one_more);
                let mut page = Page::from_overfetched(below.cloned().collect(), limit);
                page.items.reverse();
                Ok(page)
            }
        }
    }

    async fn list_undelivered(
        &self,
        receiver: &Person,
        session: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let tables = self.begin().await;
        let (sessions, sender) = match receiver {
            Person::User(user) => (tables.sessions.ids_of_user(user), Side::Agent),
            Person::Agent(admin) => (tables.sessions.ids_owned_by(admin), Side::User),
        };
        let one_more = limit.get() as usize + 1;
        let wanted = sessions.into_iter().flatten().filter(|id| session.is_none_or(|s| s == **id));
        let mut oldest: Vec<&Message> =
            wanted.flat_map(|id| tables.messages.undelivered(*id, sender).take(one_more)).collect();
        oldest.sort_unstable_by_key(|message| message.msg_id);
        let items = oldest.into_iter().take(one_more).cloned().collect();
        Ok(Page::from_overfetched(items, limit))
    }

    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
        let tables = self.begin().await;
        let counts = sessions.iter().map(|id| {
            let unread = tables.messages.count_unread(*id, reader.other());
            (*id, u32::try_from(unread).unwrap_or(u32::MAX))
        });
        Ok(counts.filter(|(_, unread)| *unread > 0).collect())
    }

    async fn highest_id(&self) -> Result<i64, StoreFault> {
        Ok(self.begin().await.highest_id())
    }
}

fn append_snapshot(tables: &Tables, batch: &[AppendRequest]) -> AppendSnapshot {
    let mut snapshot = AppendSnapshot::default();
    let mut keys = HashSet::new();
    for request in batch {
        if let Some(session) = target(tables, &request.target) {
            snapshot.sessions.insert(session.id, session.clone());
            if let AppendTarget::OpenSessionOf(user) = &request.target {
                snapshot.open.insert(user.clone(), session.id);
            }
        }
        if keys.insert((&request.sender, &request.client_msg_id)) {
            let stored = tables.messages.with_key(&request.sender, &request.client_msg_id);
            snapshot.stored.extend(stored.cloned());
        }
        if let Draft::Image(path) = &request.draft
            && let Some(upload) = tables.uploads.find(path)
        {
            snapshot.uploads.insert(*path, upload.session_id);
        }
    }
    snapshot
}

fn target<'a>(tables: &'a Tables, target: &AppendTarget) -> Option<&'a Session> {
    match target {
        AppendTarget::Session(id) => tables.sessions.find(*id),
        AppendTarget::OpenSessionOf(user) => tables.sessions.find_open(user),
    }
}

fn receipt_snapshot(tables: &Tables, batch: &[ReceiptRequest]) -> ReceiptSnapshot {
    let mut snapshot = ReceiptSnapshot::default();
    for request in batch {
        let Some(named) = tables.messages.find(request.msg_id) else { continue };
        snapshot.messages.insert(named.msg_id, named.clone());
        if let Some(session) = tables.sessions.find(named.session_id) {
            snapshot.sessions.insert(session.id, session.clone());
        }
        if request.cumulative {
            let side = named.sender.side();
            let earlier = tables.messages.unread_before(named.session_id, side, named.seq);
            let earlier = earlier.filter(|message| request.covers_earlier(message.status));
            snapshot.messages.extend(earlier.map(|message| (message.msg_id, message.clone())));
        }
    }
    snapshot
}
