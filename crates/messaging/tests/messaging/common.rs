//! Snapshots of chosen sessions for the pure rules.

use std::ops::Deref;
use std::sync::Arc;

use kefu_core::snowflake::timestamp_of;
use kefu_core::{
    Actor, Clock, IdSource, ManualClock, MsgId, Seq, SessionId, SnowflakeIds, WorkerId,
};
use kefu_events::EventContext;
use kefu_messaging::{
    AppendOutcome, AppendRequest, AppendSnapshot, AppendVerdict, Message, MessageStatus,
    MessageType, Sender, decide_append,
};
use kefu_session::{OpenVerdict, Session, decide_open};
use kefu_testkit::build::{admin, key, node, trace, user};
use kefu_upload::UploadPath;

pub(crate) fn context() -> EventContext {
    EventContext { now: ManualClock::default().now(), source: node(), trace_id: trace() }
}

pub(crate) struct SnapshotBuilder {
    ids: SnowflakeIds,
}

impl SnapshotBuilder {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { ids: SnowflakeIds::new(clock, WorkerId::default(), 0) }
    }

    pub(crate) fn waiting(&self, id: &str) -> Session {
        match decide_open(None, &user(id, 0), "web", 0, &context(), &self.ids) {
            OpenVerdict::Insert(session, _) => session,
            verdict => panic!("not opened: {verdict:?}"),
        }
    }

    pub(crate) fn active(&self, id: &str, owner: &str) -> Session {
        self.waiting(id).assigned(&admin(owner), context().now).expect("waits")
    }

    pub(crate) fn ended(&self, id: &str, owner: &str) -> Session {
        self.active(id, owner).ended(&Actor::System, context().now).expect("open")
    }

    pub(crate) fn snapshot<'a>(&self, sessions: impl IntoIterator<Item = &'a Session>) -> Known {
        let mut snapshot = AppendSnapshot::default();
        for session in sessions {
            if session.is_open() {
                snapshot.open.insert(session.user.user_id.clone(), session.id);
            }
            snapshot.sessions.insert(session.id, session.clone());
        }
        Known(snapshot)
    }
}

pub(crate) struct Known(AppendSnapshot);

impl Known {
    pub(crate) fn with_stored(mut self, message: &Message) -> Self {
        self.0.stored.push(message.clone());
        self
    }

    pub(crate) fn with_upload(mut self, path: UploadPath, session: SessionId) -> Self {
        self.0.uploads.insert(path, session);
        self
    }
}

impl Deref for Known {
    type Target = AppendSnapshot;

    fn deref(&self) -> &AppendSnapshot {
        &self.0
    }
}

/// A message as an earlier batch stored it.
pub(crate) fn stored_message(
    session: &Session,
    sender: &Sender,
    client_key: &str,
    content: &str,
    seq: i64,
) -> Message {
    let msg_id = MsgId::new(session.id.get() + seq).expect("positive");
    Message {
        msg_id,
        session_id: session.id,
        seq: Seq(seq),
        sender: sender.clone(),
        client_msg_id: key(client_key),
        msg_type: MessageType::Text,
        content: content.to_owned(),
        status: MessageStatus::Pending,
        create_time: timestamp_of(msg_id.get()),
    }
}

/// Decides with an id source whose clock agrees with the sessions'.
pub(crate) fn decide(snapshot: &AppendSnapshot, batch: &[AppendRequest]) -> AppendVerdict {
    let clock = Arc::new(ManualClock::default());
    let ids: &dyn IdSource = &SnowflakeIds::new(clock, WorkerId::default(), 0);
    decide_append(snapshot, batch, &context(), ids)
}

pub(crate) fn outcome(snapshot: &AppendSnapshot, request: AppendRequest) -> AppendOutcome {
    let mut verdict = decide(snapshot, &[request]);
    assert_eq!(verdict.outcomes.len(), 1);
    verdict.outcomes.remove(0)
}
