//! `cg_chat_message`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use kefu_core::{ClientMsgId, MsgId, Seq, SessionId, StoreFault};
use kefu_messaging::{Message, MessageStatus, Sender, Side};

use super::session::SessionTable;
use super::{ensure, ensure_unique};

/// Messages per session.
#[derive(Default)]
pub(crate) struct MessageTable {
    sessions: HashMap<SessionId, Conversation>,
    by_id: HashMap<MsgId, (SessionId, Seq)>,
    /// The idempotency keys (T2), over all sessions of a sender.
    by_key: HashMap<(Sender, ClientMsgId), BTreeMap<SessionId, Seq>>,
}

/// The messages of one session.
#[derive(Default)]
struct Conversation {
    by_seq: BTreeMap<Seq, Message>,
    from_user: Backlog,
    from_agent: Backlog,
}

/// What one side wrote and the other has not dealt with.
#[derive(Default)]
struct Backlog {
    undelivered: BTreeSet<Seq>,
    unread: BTreeSet<Seq>,
}

impl MessageTable {
    pub(crate) fn find(&self, id: MsgId) -> Option<&Message> {
        let (session, seq) = self.by_id.get(&id)?;
        self.sessions.get(session)?.by_seq.get(seq)
    }

    /// What `sender` stored under `key`, over all sessions.
    pub(crate) fn with_key(
        &self,
        sender: &Sender,
        key: &ClientMsgId,
    ) -> impl Iterator<Item = &Message> {
        let places = self.by_key.get(&(sender.clone(), key.clone())).into_iter().flatten();
        places.filter_map(|(session, seq)| self.sessions.get(session)?.by_seq.get(seq))
    }

    /// The messages of `session` in `range`, by position.
    pub(crate) fn range(
        &self,
        session: SessionId,
        range: impl RangeBounds<Seq>,
    ) -> impl DoubleEndedIterator<Item = &Message> {
        let conversation = self.sessions.get(&session);
        conversation.into_iter().flat_map(move |c| {
            let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
            c.by_seq.range(bounds).map(|(_, message)| message)
        })
    }

    /// What `sender` wrote in `session` and no device of the other side has, by position.
    pub(crate) fn undelivered(
        &self,
        session: SessionId,
        sender: Side,
    ) -> impl Iterator<Item = &Message> {
        let conversation = self.sessions.get(&session);
        conversation.into_iter().flat_map(move |c| {
            c.backlog(sender).undelivered.iter().filter_map(|seq| c.by_seq.get(seq))
        })
    }

    /// What `sender` wrote in `session` before `before` and the other side has not read, by position.
    pub(crate) fn unread_before(
        &self,
        session: SessionId,
        sender: Side,
        before: Seq,
    ) -> impl Iterator<Item = &Message> {
        let conversation = self.sessions.get(&session);
        conversation.into_iter().flat_map(move |c| {
            let unread =
                c.backlog(sender).unread.range((Bound::Unbounded, Bound::Excluded(before)));
            unread.filter_map(|seq| c.by_seq.get(seq))
        })
    }

    /// How many messages `sender` wrote in `session` that the other side has not read.
    pub(crate) fn count_unread(&self, session: SessionId, sender: Side) -> usize {
        self.sessions.get(&session).map_or(0, |c| c.backlog(sender).unread.len())
    }

    /// What the keys say once all of `fresh` were inserted.
    pub(crate) fn check(
        &self,
        fresh: &[Arc<Message>],
        sessions: &SessionTable,
    ) -> Result<(), StoreFault> {
        ensure_unique(fresh.iter().map(|m| m.msg_id), "a message id is used twice")?;
        let position = |m: &Arc<Message>| (m.session_id, m.seq);
        ensure_unique(fresh.iter().map(position), "a position is taken twice")?;
        let key = |m: &Arc<Message>| (m.session_id, m.sender.clone(), m.client_msg_id.clone());
        ensure_unique(fresh.iter().map(key), "a key is used twice")?;
        fresh.iter().try_for_each(|message| self.check_one(message, sessions))
    }

    fn check_one(&self, message: &Message, sessions: &SessionTable) -> Result<(), StoreFault> {
        let session = message.session_id;
        ensure(sessions.find(session).is_some(), "a message belongs to no session")?;
        ensure(!self.by_id.contains_key(&message.msg_id), "a message id is used twice")?;
        let taken =
            self.sessions.get(&session).is_some_and(|c| c.by_seq.contains_key(&message.seq));
        ensure(!taken, "a position is taken twice")?;
        let mut same = self.with_key(&message.sender, &message.client_msg_id);
        ensure(!same.any(|stored| stored.session_id == session), "a key is used twice")
    }

    pub(crate) fn insert(&mut self, message: Message) {
        let (session, seq) = (message.session_id, message.seq);
        self.by_id.insert(message.msg_id, (session, seq));
        let key = (message.sender.clone(), message.client_msg_id.clone());
        self.by_key.entry(key).or_default().insert(session, seq);
        self.sessions.entry(session).or_default().put(message);
    }

    /// That each of `changed` is stored and its status only goes forward.
    pub(crate) fn check_statuses(
        &self,
        changed: impl IntoIterator<Item = (MsgId, MessageStatus)>,
    ) -> Result<(), StoreFault> {
        for (id, status) in changed {
            let stored = self.find(id);
            let forward = stored.is_some_and(|message| message.status.may_become(status));
            ensure(forward, "a status goes back or belongs to no message")?;
        }
        Ok(())
    }

    pub(crate) fn put_status(&mut self, id: MsgId, status: MessageStatus) {
        let Some((session, seq)) = self.by_id.get(&id) else { return };
        let Some(conversation) = self.sessions.get_mut(session) else { return };
        if let Some(message) = conversation.by_seq.get(seq).cloned() {
            conversation.put(Message { status, ..message });
        }
    }
}

impl Conversation {
    fn put(&mut self, message: Message) {
        let seq = message.seq;
        let backlog = match message.sender.side() {
            Side::User => &mut self.from_user,
            Side::Agent => &mut self.from_agent,
        };
        backlog.undelivered.remove(&seq);
        backlog.unread.remove(&seq);
        if !message.status.is_delivered() {
            backlog.undelivered.insert(seq);
        }
        if message.status != MessageStatus::Read {
            backlog.unread.insert(seq);
        }
        self.by_seq.insert(seq, message);
    }

    const fn backlog(&self, sender: Side) -> &Backlog {
        match sender {
            Side::User => &self.from_user,
            Side::Agent => &self.from_agent,
        }
    }
}
