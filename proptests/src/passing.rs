//! The store ports with every method written once: what a broken world does not do otherwise goes to
//! the port underneath.
//!
//! For each port there is a trait of the same methods, each of which passes through unless it is
//! overridden, and [`Altered`] makes a port of whatever implements it. A further method of a port is one
//! line here.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_assignment::{AssignmentDecision, AssignmentStore, DecisionRecord, Scope, Verdict};
use kefu_core::{
    AdminId, IdSource, MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault, Timestamp,
    UserId,
};
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendVerdict, Message, MessageStore, ReceiptDecision,
    ReceiptRequest, ReceiptVerdict, Side, Window,
};
use kefu_presence::{Agent, AgentDirectory};
use kefu_queue::{Line, Place, WaitingLine};
use kefu_session::{OpenDecision, Opened, Session, SessionDecision, SessionStore, Updated};

/// A port that does some things otherwise.
pub(crate) struct Altered<T>(pub(crate) T);

macro_rules! passing {
    ($port:ident as $passing:ident {
        $(fn $method:ident($($arg:ident: $type:ty),*) -> $answer:ty;)+
    }) => {
        /// The methods of the port; each passes through unless it is overridden.
        #[async_trait]
        pub(crate) trait $passing: Send + Sync {
            /// The port underneath.
            fn inner(&self) -> &dyn $port;

            $(
                async fn $method(&self, $($arg: $type),*) -> Result<$answer, StoreFault> {
                    self.inner().$method($($arg),*).await
                }
            )+
        }

        #[async_trait]
        impl<T: $passing> $port for Altered<T> {
            $(
                async fn $method(&self, $($arg: $type),*) -> Result<$answer, StoreFault> {
                    $passing::$method(&self.0, $($arg),*).await
                }
            )+
        }
    };
}

passing!(SessionStore as PassingSessions {
    fn open(user: &UserId, decide: OpenDecision<'_>, ids: &dyn IdSource) -> Opened;
    fn update(id: SessionId, decide: SessionDecision<'_>, ids: &dyn IdSource) -> Updated;
    fn find(id: SessionId) -> Option<Session>;
    fn find_open(user: &UserId) -> Option<Session>;
    fn find_latest_ended(user: &UserId) -> Option<Session>;
    fn list_open_after(after: Option<SessionId>, limit: u32) -> Vec<Session>;
    fn list_owned(admin: &AdminId) -> Vec<Session>;
    fn list_tips(ids: &[SessionId]) -> BTreeMap<SessionId, Seq>;
});

passing!(AgentDirectory as PassingAgents {
    fn find(admin: &AdminId) -> Option<Agent>;
    fn list_online() -> Vec<Agent>;
    fn list_eligible(limit: u32) -> Vec<Agent>;
    fn list_live() -> Vec<Agent>;
    fn list_gone(before: Timestamp) -> Vec<Agent>;
    fn list_after(after: Option<&AdminId>, limit: u32) -> Vec<Agent>;
});

passing!(AssignmentStore as PassingAssignments {
    fn transact(scope: &Scope, decide: AssignmentDecision<'_>, ids: &dyn IdSource) -> Verdict;
    fn list_records(session: SessionId) -> Vec<DecisionRecord>;
});

passing!(WaitingLine as PassingLine {
    fn front(limit: u32) -> Line;
    fn place(session: SessionId) -> Option<Place>;
});

passing!(MessageStore as PassingMessages {
    fn append(
        batch: &[AppendRequest], decide: AppendDecision<'_>, ids: &dyn IdSource
    ) -> AppendVerdict;
    fn record(batch: &[ReceiptRequest], decide: ReceiptDecision<'_>) -> ReceiptVerdict;
    fn find(id: MsgId) -> Option<Message>;
    fn history(session: SessionId, window: Window, limit: PageLimit) -> Page<Message>;
    fn list_undelivered(
        receiver: &Person, session: Option<SessionId>, limit: PageLimit
    ) -> Page<Message>;
    fn count_unread(sessions: &[SessionId], reader: Side) -> BTreeMap<SessionId, u32>;
    fn highest_id() -> i64;
});
