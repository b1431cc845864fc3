//! Worlds that do not keep for later what was sent while nobody was there (2.7).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use kefu_core::{IdSource, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendVerdict, Message, MessageStatus,
    MessageStore,
};

use crate::passing::{Altered, PassingMessages};

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
    Stores { messages: Arc::new(Altered(broken)), ..stores }
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
impl PassingMessages for Broken {
    fn inner(&self) -> &dyn MessageStore {
        self.store.as_ref()
    }

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
}
