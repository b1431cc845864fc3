//! Typing marks (P3): relayed, never stored; they end by themselves after 6 s, on a message, on the
//! session's end and with the typist's connection.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use kefu_core::limit::TYPING_TTL;
use kefu_core::{Caller, ConnId, Person, SessionId};
use kefu_messaging::{Message, Parties, Push, Side};
use kefu_session::Session;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::Connections;

/// Room for reports; typing is the first thing to be dropped under pressure (L1).
const QUEUE: usize = 1_024;

/// One side of one session.
type Mark = (SessionId, Side);

enum Report {
    Typing { mark: Mark, conn: ConnId, to: Option<Person>, is_typing: bool },
    Sent(Mark),
    Closed(ConnId),
    Moved(SessionId),
    Ended(SessionId),
}

/// Tells the typing task what happens.
#[derive(Clone)]
pub(crate) struct Typing {
    reports: mpsc::Sender<Report>,
}

impl Typing {
    pub(crate) fn start(
        connections: &Arc<dyn Connections>,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (reports, receiver) = mpsc::channel(QUEUE);
        let marks = Marks {
            connections: Arc::clone(connections),
            active: HashMap::new(),
            deadlines: DelayQueue::new(),
        };
        tracker.spawn(marks.run(receiver, stop.clone()));
        Self { reports }
    }

    pub(crate) fn report(&self, caller: &Caller, conn: ConnId, session: &Session, is_typing: bool) {
        let side = if caller.user_id().is_some() { Side::User } else { Side::Agent };
        let to = Parties::from(session).on(side.other());
        self.say(Report::Typing { mark: (session.id, side), conn, to, is_typing });
    }

    pub(crate) fn message_sent(&self, message: &Message) {
        self.say(Report::Sent((message.session_id, message.sender.side())));
    }

    pub(crate) fn connection_closed(&self, conn: ConnId) {
        self.say(Report::Closed(conn));
    }

    /// The session left its agent, who gets nothing more of it (A3).
    pub(crate) fn session_moved(&self, session: SessionId) {
        self.say(Report::Moved(session));
    }

    pub(crate) fn session_ended(&self, session: SessionId) {
        self.say(Report::Ended(session));
    }

    /// What is dropped here ends by its deadline.
    fn say(&self, report: Report) {
        if self.reports.try_send(report).is_err() {
            metrics::counter!("kefu_typing_dropped_total").increment(1);
        }
    }
}

struct Active {
    conn: ConnId,
    to: Person,
    key: Key,
}

struct Marks {
    connections: Arc<dyn Connections>,
    active: HashMap<Mark, Active>,
    deadlines: DelayQueue<Mark>,
}

impl Marks {
    async fn run(mut self, mut reports: mpsc::Receiver<Report>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                report = reports.recv() => match report {
                    Some(report) => self.take(report).await,
                    None => return,
                },
                Some(expired) = self.deadlines.next() => {
                    let mark = expired.into_inner();
                    if let Some(active) = self.active.remove(&mark) {
                        self.relay(mark, &active.to, false).await;
                    }
                }
            }
        }
    }

    async fn take(&mut self, report: Report) {
        match report {
            Report::Typing { mark, conn, to: Some(to), is_typing: true } => {
                self.begin(mark, conn, to).await;
            }
            Report::Typing { mark, is_typing: false, .. } | Report::Sent(mark) => {
                self.end(mark).await;
            }
            Report::Typing { to: None, is_typing: true, .. } => {}
            Report::Closed(conn) => self.end_where(|_, active| active.conn == conn).await,
            Report::Moved(session) => {
                self.drop_mark((session, Side::User));
                self.end((session, Side::Agent)).await;
            }
            Report::Ended(session) => {
                self.end_where(|mark, _| mark.0 == session).await;
            }
        }
    }

    async fn begin(&mut self, mark: Mark, conn: ConnId, to: Person) {
        self.drop_mark(mark);
        self.relay(mark, &to, true).await;
        let key = self.deadlines.insert(mark, TYPING_TTL);
        self.active.insert(mark, Active { conn, to, key });
    }

    async fn end(&mut self, mark: Mark) {
        if let Some(active) = self.drop_mark(mark) {
            self.relay(mark, &active.to, false).await;
        }
    }

    fn drop_mark(&mut self, mark: Mark) -> Option<Active> {
        let active = self.active.remove(&mark)?;
        self.deadlines.remove(&active.key);
        Some(active)
    }

    async fn end_where(&mut self, matches: impl Fn(&Mark, &Active) -> bool) {
        let marks: Vec<Mark> = self
            .active
            .iter()
            .filter(|(mark, active)| matches(mark, active))
            .map(|(mark, _)| *mark)
            .collect();
        for mark in marks {
            self.end(mark).await;
        }
    }

    async fn relay(&self, mark: Mark, to: &Person, is_typing: bool) {
        let push = Push::Typing { session_id: mark.0, is_typing };
        self.connections.push(to, &push, None).await;
    }
}
