//! Receipts with one mistake (2.5).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kefu_core::{MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{
    Message, MessageStatus, MessageStore, ReceiptDecision, ReceiptRequest, ReceiptSnapshot,
    ReceiptVerdict, Window, decide_receipts,
};
use kefu_testkit::World;

use crate::backend::Backend;
use crate::passing::{Altered, PassingMessages};

/// What goes wrong on a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptMistake {
    /// Nothing: shows that it is the mistake that is caught, not the wrapper.
    Nothing,
    /// It answers, and so lets `peer_ack` leave, without having written (M3).
    AnswersBeforeCommit,
    /// It answers, and so lets `peer_ack` leave, a moment before it writes (M3).
    TellsBeforeCommit,
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
    /// Answered, and written before the next look at a message.
    late: Mutex<Vec<ReceiptRequest>>,
}

impl CarelessReceipts {
    /// A world on a backend of its own that makes `mistake` about receipts.
    pub async fn world<B: Backend>(mistake: ReceiptMistake) -> (B, World) {
        let backend = B::start().await;
        let (stores, late) = (backend.stores(), Mutex::default());
        let careless = Self { inner: Arc::clone(&stores.messages), mistake, late };
        let messages = Arc::new(Altered(careless));
        (backend, World::new(Stores { messages, ..stores }))
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
impl PassingMessages for CarelessReceipts {
    fn inner(&self) -> &dyn MessageStore {
        self.inner.as_ref()
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        match self.mistake {
            ReceiptMistake::AnswersBeforeCommit => self.answer_only(batch, decide).await,
            ReceiptMistake::TellsBeforeCommit => {
                self.late.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(batch);
                self.answer_only(batch, decide).await
            }
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
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        self.inner.record(&late, &decide_receipts).await?;
        let mut found = self.inner.find(id).await?;
        if self.mistake == ReceiptMistake::RetriesDelivered
            && let Some(message) = &mut found
        {
            message.status = MessageStatus::Pending;
        }
        Ok(found)
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
}
