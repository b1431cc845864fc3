//! The ports behind [`Flaky`], [`Slow`] and [`Late`]: each method is a read or a write of the wrapper.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_assignment::{AssignmentDecision, AssignmentStore, DecisionRecord, Scope, Verdict};
use kefu_core::{
    AdminId, IdSource, MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault, UserId,
};
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendVerdict, Message, MessageStore, ReceiptDecision,
    ReceiptRequest, ReceiptVerdict, Side, Window,
};
use kefu_session::{OpenDecision, Opened, Session, SessionDecision, SessionStore, Updated};

use crate::fault::{Flaky, Late, Slow};

macro_rules! delegate {
    ($wrapper:ident) => {
        #[async_trait]
        impl<S: SessionStore + ?Sized> SessionStore for $wrapper<S> {
            async fn open(
                &self,
                user: &UserId,
                decide: OpenDecision<'_>,
                ids: &dyn IdSource,
            ) -> Result<Opened, StoreFault> {
                self.write(self.inner.open(user, decide, ids)).await
            }

            async fn update(
                &self,
                id: SessionId,
                decide: SessionDecision<'_>,
                ids: &dyn IdSource,
            ) -> Result<Updated, StoreFault> {
                self.write(self.inner.update(id, decide, ids)).await
            }

            async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
                self.read(self.inner.find(id)).await
            }

            async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
                self.read(self.inner.find_open(user)).await
            }

            async fn find_latest_ended(
                &self,
                user: &UserId,
            ) -> Result<Option<Session>, StoreFault> {
                self.read(self.inner.find_latest_ended(user)).await
            }

            async fn list_open_after(
                &self,
                after: Option<SessionId>,
                limit: u32,
            ) -> Result<Vec<Session>, StoreFault> {
                self.read(self.inner.list_open_after(after, limit)).await
            }

            async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault> {
                self.read(self.inner.list_owned(admin)).await
            }

            async fn list_tips(
                &self,
                ids: &[SessionId],
            ) -> Result<BTreeMap<SessionId, Seq>, StoreFault> {
                self.read(self.inner.list_tips(ids)).await
            }
        }

        #[async_trait]
        impl<S: AssignmentStore + ?Sized> AssignmentStore for $wrapper<S> {
            async fn transact(
                &self,
                scope: &Scope,
                decide: AssignmentDecision<'_>,
                ids: &dyn IdSource,
            ) -> Result<Verdict, StoreFault> {
                self.write(self.inner.transact(scope, decide, ids)).await
            }

            async fn list_records(
                &self,
                session: SessionId,
            ) -> Result<Vec<DecisionRecord>, StoreFault> {
                self.read(self.inner.list_records(session)).await
            }
        }

        #[async_trait]
        impl<S: MessageStore + ?Sized> MessageStore for $wrapper<S> {
            async fn append(
                &self,
                batch: &[AppendRequest],
                decide: AppendDecision<'_>,
                ids: &dyn IdSource,
            ) -> Result<AppendVerdict, StoreFault> {
                self.write(self.inner.append(batch, decide, ids)).await
            }

            async fn record(
                &self,
                batch: &[ReceiptRequest],
                decide: ReceiptDecision<'_>,
            ) -> Result<ReceiptVerdict, StoreFault> {
                self.write(self.inner.record(batch, decide)).await
            }

            async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
                self.read(self.inner.find(id)).await
            }

            async fn history(
                &self,
                session: SessionId,
                window: Window,
                limit: PageLimit,
            ) -> Result<Page<Message>, StoreFault> {
                self.read(self.inner.history(session, window, limit)).await
            }

            async fn list_undelivered(
                &self,
                receiver: &Person,
                session: Option<SessionId>,
                limit: PageLimit,
            ) -> Result<Page<Message>, StoreFault> {
                self.read(self.inner.list_undelivered(receiver, session, limit)).await
            }

            async fn count_unread(
                &self,
                sessions: &[SessionId],
                reader: Side,
            ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
                self.read(self.inner.count_unread(sessions, reader)).await
            }

            async fn highest_id(&self) -> Result<i64, StoreFault> {
                self.read(self.inner.highest_id()).await
            }
        }
    };
}

delegate!(Flaky);
delegate!(Slow);
delegate!(Late);
