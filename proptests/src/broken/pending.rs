//! Worlds that do not keep for later what was sent while nobody was there (2.7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, Person, SessionId, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendVerdict, Message, MessageStatus,
    MessageStore, ReceiptDecision, ReceiptRequest, ReceiptVerdict, Side, Window,
};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingFlaw {
    /// A message is stored as delivered.
    DeliveredAtAppend,
    /// Every seventh append is answered and not written.
    AnsweredUnwritten,
}

/// `stores` with that flaw.
#[must_use]
pub fn pending(stores: Stores, flaw: PendingFlaw) -> Stores {
    let broken = Broken { store: Arc::clone(&stores.messages), flaw, appends: AtomicU64::new(0) };
    Stores { messages: Arc::new(broken), ..stores }
}

struct Broken {
    store: Arc<dyn MessageStore>,
    flaw: PendingFlaw,
    appends: AtomicU64,
}

impl Broken {
    fn flawed(&self, verdict: AppendVerdict, is_seventh: bool) -> AppendVerdict {
        match self.flaw {
            PendingFlaw::DeliveredAtAppend => {
                let delivered = |message: &Arc<Message>| {
                    Arc::new(Message {
                        status: MessageStatus::Delivered,
                        ..Message::clone(message)
                    })
                };
                let messages = verdict.messages.iter().map(delivered).collect();
                AppendVerdict { messages, ..verdict }
            }
            PendingFlaw::AnsweredUnwritten if is_seventh => {
                AppendVerdict { outcomes: verdict.outcomes, ..AppendVerdict::default() }
            }
            PendingFlaw::AnsweredUnwritten => verdict,
        }
    }
}

#[async_trait]
impl MessageStore for Broken {
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let is_seventh = self.appends.fetch_add(1, Ordering::SeqCst) % 7 == 6;
        let flawed = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
            self.flawed(decide(snapshot, batch, ids), is_seventh)
        };
        self.store.append(batch, &flawed, ids).await
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        self.store.record(batch, decide).await
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        self.store.find(id).await
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        self.store.history(session, window, limit).await
    }

    async fn list_undelivered(
        &self,
        receiver: &Person,
        session: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        self.store.list_undelivered(receiver, session, limit).await
    }

    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
        self.store.count_unread(sessions, reader).await
    }

    async fn highest_id(&self) -> Result<i64, StoreFault> {
        self.store.highest_id().await
    }
}
