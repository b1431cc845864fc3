//! Receipts with one mistake (2.5).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault};
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendVerdict, Message, MessageStatus, MessageStore,
    ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict, Side, Window,
};

/// What goes wrong on a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptMistake {
    /// Nothing: shows that it is the mistake that is caught, not the wrapper.
    Nothing,
    /// It answers, and so lets `peer_ack` leave, without having written (M3).
    AnswersBeforeCommit,
    /// What was delivered is handed out again on a reconnect (M4).
    ListsDelivered,
    /// A retry does not see that the message was delivered meanwhile (M3).
    RetriesDelivered,
    /// A receipt for several messages marks only the one it names.
    ForgetsEarlier,
    /// What was not delivered is missing on a reconnect (M4).
    ListsNothing,
}

/// A message store that makes one mistake about receipts.
pub struct CarelessReceipts {
    inner: Arc<dyn MessageStore>,
    mistake: ReceiptMistake,
}

impl CarelessReceipts {
    /// Over `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn MessageStore>, mistake: ReceiptMistake) -> Self {
        Self { inner, mistake }
    }

    async fn answer_only(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        let decided = Mutex::new(ReceiptVerdict::default());
        let keep = |snapshot: &ReceiptSnapshot, requests: &[ReceiptRequest]| {
            let verdict = decide(snapshot, requests);
            *decided.lock().unwrap_or_else(PoisonError::into_inner) = verdict.clone();
            ReceiptVerdict { changes: Vec::new(), ..verdict }
        };
        self.inner.record(batch, &keep).await?;
        Ok(decided.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl MessageStore for CarelessReceipts {
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        self.inner.append(batch, decide, ids).await
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        match self.mistake {
            ReceiptMistake::AnswersBeforeCommit => self.answer_only(batch, decide).await,
            ReceiptMistake::ForgetsEarlier => {
                let mut single = batch.to_vec();
                single.iter_mut().for_each(|request| request.cumulative = false);
                self.inner.record(&single, decide).await
            }
            ReceiptMistake::Nothing
            | ReceiptMistake::ListsDelivered
            | ReceiptMistake::RetriesDelivered
            | ReceiptMistake::ListsNothing => self.inner.record(batch, decide).await,
        }
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        let mut found = self.inner.find(id).await?;
        if self.mistake == ReceiptMistake::RetriesDelivered
            && let Some(message) = &mut found
        {
            message.status = MessageStatus::Pending;
        }
        Ok(found)
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        self.inner.history(session, window, limit).await
    }

    async fn list_undelivered(
        &self,
        receiver: &Person,
        session: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        match (self.mistake, session) {
            (ReceiptMistake::ListsDelivered, Some(session)) => {
                self.inner.history(session, Window::After(Seq(0)), limit).await
            }
            (ReceiptMistake::ListsNothing, _) => Ok(Page { items: Vec::new(), has_more: false }),
            _ => self.inner.list_undelivered(receiver, session, limit).await,
        }
    }

    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
        self.inner.count_unread(sessions, reader).await
    }

    async fn highest_id(&self) -> Result<i64, StoreFault> {
        self.inner.highest_id().await
    }
}
