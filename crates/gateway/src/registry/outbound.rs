//! One connection's outbound queue: one order of frames (M6), bounded in bytes (L1), and held back
//! while a `chat.connect` is being answered (S1).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use kefu_core::{Seq, SessionId};
use kefu_messaging::Push;
use kefu_protocol::CloseCode;
use tokio::sync::Notify;

use super::served::Served;

/// What may become of a frame under pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Dropped first.
    Typing,
    /// A push: too many of them close the connection, and resume repairs it.
    Push,
    /// A direct answer: never dropped, and bounded by what the connection may have in flight.
    Answer,
}

/// What an answer tells about how far its connection has been served (M5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// Nothing.
    None,
    /// It acknowledges this stored message.
    Stored(SessionId, Seq),
    /// It gives the session to the connection, which pulls what is up to here.
    Given(SessionId, Seq),
    /// After it the client has everything of the session up to here.
    CaughtUp(SessionId, Seq),
    /// The session is over for this connection.
    Over(SessionId),
}

#[derive(Debug)]
struct Queued {
    text: Utf8Bytes,
    class: Class,
    effect: Effect,
}

/// What a push changes about the sessions its connection is served. It takes effect in the order of
/// the frames: for one that was held back when it is let go, else a session that was taken away
/// during a connect would be followed again after it (A3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    /// It carries this message.
    Carries(SessionId, Seq),
    /// The connection gets the session, and pulls what is up to here.
    Gives(SessionId, Seq),
    /// The session has an agent. One that is not followed yet was opened on another device.
    Opens(SessionId),
    /// The session is no longer the connection's.
    Takes(SessionId),
}

impl Effect {
    fn of(push: &Push) -> Self {
        match push {
            Push::Message { message, .. } => Self::Carries(message.session_id, message.seq),
            Push::SessionNew(offer) => Self::Gives(offer.session_id, offer.last_seq),
            Push::Assigned { session_id, .. } => Self::Opens(*session_id),
            Push::SessionRemoved { session_id, .. } | Push::Ended { session_id, .. } => {
                Self::Takes(*session_id)
            }
            Push::PeerAck { .. }
            | Push::Typing { .. }
            | Push::Rated { .. }
            | Push::Requeued { .. }
            | Push::OfflineNotice
            | Push::QueuePosition { .. }
            | Push::QueueList { .. }
            | Push::AgentStatus { .. }
            | Push::WatchedTyping { .. }
            | Push::Read { .. }
            | Push::Page { .. }
            | Push::Board(_)
            | Push::Note { .. } => Self::None,
        }
    }
}

/// What the connection task finds in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Frames to write, in order.
    Frames(Vec<Utf8Bytes>),
    /// Everything is written: close.
    Close(CloseCode),
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Queued>,
    /// Pushes that wait behind the answer to a `chat.connect`.
    held: Option<VecDeque<Queued>>,
    bytes: usize,
    closing: Option<CloseCode>,
    served: Served,
}

/// The queue between everybody who pushes and the one task that writes.
#[derive(Debug)]
pub(crate) struct Outbound {
    state: Mutex<State>,
    wake: Notify,
    doom: Notify,
    limit: usize,
}

impl Outbound {
    pub(crate) fn new(limit: usize) -> Self {
        let state = Mutex::new(State::default());
        Self { state, wake: Notify::new(), doom: Notify::new(), limit }
    }

    /// Queues a push. `false` when the connection takes none any more.
    pub(crate) fn push(&self, push: &Push, text: Utf8Bytes) -> bool {
        let mut state = self.state();
        if state.closing.is_some() {
            return false;
        }
        let class = match push {
            Push::Typing { .. } | Push::WatchedTyping { .. } => Class::Typing,
            Push::Message { .. }
            | Push::PeerAck { .. }
            | Push::Assigned { .. }
            | Push::Ended { .. }
            | Push::Rated { .. }
            | Push::Requeued { .. }
            | Push::OfflineNotice
            | Push::QueuePosition { .. }
            | Push::SessionNew(_)
            | Push::SessionRemoved { .. }
            | Push::QueueList { .. }
            | Push::AgentStatus { .. }
            | Push::Read { .. }
            | Push::Page { .. }
            | Push::Board(_)
            | Push::Note { .. } => Class::Push,
        };
        if !state.has_room(text.len(), self.limit) {
            if class == Class::Typing {
                metrics::counter!("kefu_typing_dropped_total").increment(1);
                return true;
            }
            metrics::counter!("kefu_slow_consumer_total").increment(1);
            state.closing = Some(CloseCode::SlowConsumer);
            drop(state);
            self.wake.notify_one();
            self.doom.notify_one();
            return false;
        }
        state.put(Queued { text, class, effect: Effect::of(push) });
        drop(state);
        self.wake.notify_one();
        true
    }

    /// Queues a direct answer.
    pub(crate) fn answer(&self, text: Utf8Bytes, note: Note) {
        let mut state = self.state();
        match note {
            Note::None => {}
            Note::Stored(session, seq) => state.served.note(session, seq),
            Note::Given(session, upto) => state.served.start(session, upto),
            Note::CaughtUp(session, upto) => state.served.catch_up(session, upto),
            Note::Over(session) => state.served.forget(session),
        }
        state.bytes += text.len();
        state.queue.push_back(Queued { text, class: Class::Answer, effect: Effect::None });
        drop(state);
        self.wake.notify_one();
    }

    /// Holds pushes back until [`Self::release`].
    pub(crate) fn hold(&self) {
        let mut state = self.state();
        state.held.get_or_insert_default();
    }

    /// Sends the answer to a `chat.connect`, then what was held back meanwhile, except messages that
    /// the answer itself carried. From here on the connection takes part in `sessions`, and has those
    /// in `served` up to there.
    pub(crate) fn release(
        &self,
        answers: Vec<Utf8Bytes>,
        sessions: &[SessionId],
        served: &BTreeMap<SessionId, Seq>,
    ) {
        let mut state = self.state();
        for session in sessions {
            state.served.follow(*session);
        }
        for (session, upto) in served {
            state.served.start(*session, *upto);
        }
        for text in answers {
            state.bytes += text.len();
            state.queue.push_back(Queued { text, class: Class::Answer, effect: Effect::None });
        }
        for queued in state.held.take().unwrap_or_default() {
            if let Effect::Carries(session, seq) = queued.effect
                && served.get(&session).is_some_and(|upto| *upto >= seq)
            {
                state.bytes = state.bytes.saturating_sub(queued.text.len());
                continue;
            }
            state.enqueue(queued);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Closes after what is queued. The first reason stays.
    pub(crate) fn close(&self, code: CloseCode) {
        let mut state = self.state();
        state.closing.get_or_insert(code);
        drop(state);
        self.wake.notify_one();
    }

    /// Up to which position each session was given to the connection.
    pub(crate) fn served(&self) -> Vec<(SessionId, Seq)> {
        self.state().served.positions()
    }

    /// Whether so much is queued that the socket should not be read (M6).
    pub(crate) fn is_congested(&self) -> bool {
        self.state().bytes > self.limit / 2
    }

    /// Waits for something to write. Up to `chunk` bytes at a time, so that one write stays small.
    pub(crate) async fn next(&self, chunk: usize) -> Next {
        loop {
            if let Some(next) = self.take(chunk) {
                return next;
            }
            self.wake.notified().await;
        }
    }

    /// Waits until the queue overflows: the write that is under way is hopeless.
    pub(crate) async fn doomed(&self) {
        self.doom.notified().await;
    }

    fn take(&self, chunk: usize) -> Option<Next> {
        let mut state = self.state();
        let mut frames = Vec::new();
        let mut size = 0;
        while size < chunk
            && let Some(queued) = state.queue.pop_front()
        {
            size += queued.text.len();
            frames.push(queued.text);
        }
        state.bytes = state.bytes.saturating_sub(size);
        if !frames.is_empty() {
            return Some(Next::Frames(frames));
        }
        state.closing.map(Next::Close)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room by dropping typing frames first (L1).
    fn has_room(&mut self, more: usize, limit: usize) -> bool {
        if self.bytes + more <= limit {
            return true;
        }
        let mut freed = 0;
        self.queue.retain(|queued| {
            let typing = queued.class == Class::Typing;
            freed += if typing { queued.text.len() } else { 0 };
            !typing
        });
        self.bytes = self.bytes.saturating_sub(freed);
        self.bytes + more <= limit
    }

    fn put(&mut self, queued: Queued) {
        self.bytes += queued.text.len();
        match &mut self.held {
            Some(held) => held.push_back(queued),
            None => self.enqueue(queued),
        }
    }

    fn enqueue(&mut self, queued: Queued) {
        match queued.effect {
            Effect::None => {}
            Effect::Carries(session, seq) => self.served.note(session, seq),
            Effect::Gives(session, upto) => self.served.start(session, upto),
            Effect::Opens(session) => self.served.open(session),
            Effect::Takes(session) => self.served.forget(session),
        }
        self.queue.push_back(queued);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kefu_core::{ClientMsgId, MsgId, Timestamp, UserId};
    use kefu_messaging::{Message, MessageStatus, MessageType, Sender};

    use super::*;

    fn session() -> SessionId {
        SessionId::new(7).expect("positive")
    }

    fn message(seq: i64) -> Push {
        let message = Message {
            msg_id: MsgId::new(seq).expect("positive"),
            session_id: session(),
            seq: Seq(seq),
            sender: Sender::User(UserId::new("u").expect("valid")),
            client_msg_id: ClientMsgId::new("k").expect("valid"),
            msg_type: MessageType::Text,
            content: "x".into(),
            status: MessageStatus::Pending,
            create_time: Timestamp(0),
        };
        Push::Message { message: Arc::new(message), attempt: 1, own: false }
    }

    const TYPING: fn() -> Push = || Push::Typing { session_id: session(), is_typing: true };

    fn frames(outbound: &Outbound) -> Vec<String> {
        match outbound.take(usize::MAX) {
            Some(Next::Frames(frames)) => frames.iter().map(|f| f.as_str().to_owned()).collect(),
            Some(Next::Close(_)) | None => Vec::new(),
        }
    }

    #[test]
    fn nothing_overtakes_the_answer_to_connect_and_nothing_comes_twice() {
        let outbound = Outbound::new(1_000);
        outbound.hold();
        outbound.push(&message(4), "four".into());
        outbound.push(&message(5), "five".into());
        assert!(frames(&outbound).is_empty(), "S1");
        let served = BTreeMap::from([(session(), Seq(4))]);
        outbound.release(vec!["connected".into()], &[session()], &served);
        assert_eq!(frames(&outbound), ["connected", "five"]);
        assert_eq!(outbound.served(), [(session(), Seq(5))]);
    }

    #[test]
    fn typing_is_dropped_first_and_a_full_queue_closes() {
        let outbound = Outbound::new(10);
        assert!(outbound.push(&TYPING(), "typing".into()));
        assert!(outbound.push(&message(1), "12345678".into()), "typing made room (L1)");
        assert!(outbound.push(&TYPING(), "typing".into()), "dropped, not fatal");
        outbound.answer("an answer is never dropped".into(), Note::None);
        assert!(!outbound.push(&message(2), "12345678".into()));
        assert_eq!(frames(&outbound), ["12345678", "an answer is never dropped"]);
        assert_eq!(outbound.take(9), Some(Next::Close(CloseCode::SlowConsumer)));
    }

    #[test]
    fn a_removed_session_is_no_longer_followed() {
        let outbound = Outbound::new(1_000);
        outbound.release(Vec::new(), &[], &BTreeMap::from([(session(), Seq(4))]));
        let reason = kefu_messaging::RemovalReason::Requeued;
        outbound.push(&Push::SessionRemoved { session_id: session(), reason }, "gone".into());
        assert!(outbound.served().is_empty(), "A3");
    }

    #[test]
    fn a_session_removed_during_the_connect_is_not_followed_after_it() {
        let outbound = Outbound::new(1_000);
        outbound.hold();
        let reason = kefu_messaging::RemovalReason::Requeued;
        outbound.push(&Push::SessionRemoved { session_id: session(), reason }, "gone".into());
        let served = BTreeMap::from([(session(), Seq(4))]);
        outbound.release(vec!["connected".into()], &[session()], &served);
        assert_eq!(frames(&outbound), ["connected", "gone"]);
        assert!(outbound.served().is_empty(), "A3");
    }

    #[test]
    fn reading_a_history_follows_nothing_new() {
        let outbound = Outbound::new(1_000);
        outbound.answer("history".into(), Note::CaughtUp(session(), Seq(4)));
        assert!(outbound.served().is_empty(), "A3");
        outbound.release(Vec::new(), &[session()], &BTreeMap::new());
        assert!(outbound.served().is_empty(), "more is to be pulled (M4)");
        outbound.answer("history".into(), Note::CaughtUp(session(), Seq(4)));
        assert_eq!(outbound.served(), [(session(), Seq(4))], "M5");
    }
}
