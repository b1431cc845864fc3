//! Typing marks (P3): relayed, never stored; they end by themselves after 6 s, on a message, on the
//! session's end and with the typist's connection.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use kefu_core::limit::TYPING_TTL;
use kefu_core::{AdminId, Caller, ConnId, Person, SessionId, TraceId};
use kefu_events::traced;
use kefu_messaging::{Message, Parties, Push, Pusher, Side};
use kefu_session::Session;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::owners::Owners;
use crate::turns::Turns;

/// Room for reports; typing is the first thing to be dropped under pressure (L1).
const QUEUE: usize = 1_024;

/// One side of one session.
type Mark = (SessionId, Side);

enum Report {
    Typing(Typed),
    Sent(Mark),
    Closed(ConnId),
    Moved { session: SessionId, version: i64, owner: Option<AdminId> },
    Ended { session: SessionId, version: i64 },
}

/// Somebody's report, with the session as it was when their right to it was checked.
struct Typed {
    mark: Mark,
    conn: ConnId,
    by: Person,
    parties: Parties,
    version: i64,
    is_typing: bool,
    trace: TraceId,
}

/// Tells the typing task what happens.
#[derive(Clone)]
pub(crate) struct Typing {
    reports: mpsc::Sender<Report>,
}

impl Typing {
    pub(crate) fn start(
        pusher: &Arc<dyn Pusher>,
        turns: &Arc<Turns>,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (reports, receiver) = mpsc::channel(QUEUE);
        let marks = Marks {
            pusher: Arc::clone(pusher),
            turns: Arc::clone(turns),
            active: HashMap::new(),
            deadlines: DelayQueue::new(),
            owners: Owners::default(),
        };
        tracker.spawn(marks.run(receiver, stop.clone()));
        Self { reports }
    }

    pub(crate) fn report(
        &self,
        caller: &Caller,
        conn: ConnId,
        session: &Session,
        is_typing: bool,
        trace: &TraceId,
    ) {
        let side = if caller.user_id().is_some() { Side::User } else { Side::Agent };
        self.say(Report::Typing(Typed {
            mark: (session.id, side),
            conn,
            by: caller.person(),
            parties: Parties::from(session),
            version: session.version,
            is_typing,
            trace: trace.clone(),
        }));
    }

    pub(crate) fn message_sent(&self, message: &Message) {
        self.say(Report::Sent((message.session_id, message.sender.side())));
    }

    pub(crate) fn connection_closed(&self, conn: ConnId) {
        self.say(Report::Closed(conn));
    }

    /// The session left its agent, who gets nothing more of it (A3).
    pub(crate) fn session_moved(&self, session: SessionId, version: i64, owner: Option<AdminId>) {
        self.say(Report::Moved { session, version, owner });
    }

    pub(crate) fn session_ended(&self, session: SessionId, version: i64) {
        self.say(Report::Ended { session, version });
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
    /// The frame that said so.
    trace: TraceId,
}

struct Marks {
    pusher: Arc<dyn Pusher>,
    turns: Arc<Turns>,
    active: HashMap<Mark, Active>,
    deadlines: DelayQueue<Mark>,
    /// Of sessions that left an agent, or ended: a report may have been checked before that, and come after it.
    owners: Owners,
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
                        self.relay(mark, &active.to, false, &active.trace).await;
                    }
                }
            }
        }
    }

    async fn take(&mut self, report: Report) {
        match report {
            Report::Typing(typed) => self.typed(typed).await,
            Report::Sent(mark) => self.end(mark).await,
            Report::Closed(conn) => self.end_where(|_, active| active.conn == conn).await,
            Report::Moved { session, version, owner } => {
                self.owners.note(session, version, owner.as_ref());
                // Late: it moved on, and these marks are of those who hold it now.
                if self.owners.since(session, version).is_some() {
                    return;
                }
                self.drop_mark((session, Side::User));
                self.end((session, Side::Agent)).await;
            }
            Report::Ended { session, version } => {
                self.owners.note(session, version, None);
                self.end_where(|mark, _| mark.0 == session).await;
            }
        }
    }

    async fn typed(&mut self, typed: Typed) {
        let Typed { mark, conn, by, parties, version, is_typing, trace } = typed;
        let owner = self.owners.owner(mark.0, version, parties.owner.clone());
        let parties = Parties { owner, ..parties };
        // Who lost the session meanwhile neither types in it nor sees typing (A3).
        if parties.on(mark.1) != Some(by) {
            return;
        }
        match parties.on(mark.1.other()) {
            Some(to) if is_typing => self.begin(mark, conn, to, trace).await,
            Some(_) | None => self.end(mark).await,
        }
    }

    async fn begin(&mut self, mark: Mark, conn: ConnId, to: Person, trace: TraceId) {
        self.drop_mark(mark);
        self.relay(mark, &to, true, &trace).await;
        let key = self.deadlines.insert(mark, TYPING_TTL);
        self.active.insert(mark, Active { conn, to, key, trace });
    }

    async fn end(&mut self, mark: Mark) {
        if let Some(active) = self.drop_mark(mark) {
            self.relay(mark, &active.to, false, &active.trace).await;
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

    /// A mark's end carries the trace of its beginning, whatever ends it.
    async fn relay(&self, mark: Mark, to: &Person, is_typing: bool, trace: &TraceId) {
        let push = Push::Typing { session_id: mark.0, is_typing };
        let pushed = async {
            self.pusher.push(to, &push, None).await;
        };
        let span = tracing::info_span!("typing", trace_id = %trace);
        traced(Some(trace), span, self.turns.unless_barred(mark.0, to, pushed)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use kefu_core::UserId;
    use kefu_messaging::Reach;

    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<Person>>);

    #[async_trait]
    impl Pusher for Told {
        async fn push(&self, to: &Person, _: &Push, _: Option<ConnId>) -> Reach {
            self.0.lock().expect("no panic").push(to.clone());
            Reach { connections: 1 }
        }

        async fn push_to_consoles(&self, _: &Push) {}
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_checked_before_a_transfer_goes_to_the_new_owner() {
        let told = Arc::new(Told::default());
        let mut marks = Marks {
            pusher: Arc::clone(&told) as Arc<dyn Pusher>,
            turns: Arc::new(Turns::new()),
            active: HashMap::new(),
            deadlines: DelayQueue::new(),
            owners: Owners::default(),
        };
        let session = SessionId::new(7).expect("positive");
        let agent = |id: &str| AdminId::new(id).expect("valid");
        let user = UserId::new("u").expect("valid");
        let typed = |side, by| {
            let owner = Some(agent("a"));
            let parties = Parties { session_id: session, user: user.clone(), owner };
            let (mark, conn) = ((session, side), ConnId(1));
            let trace = TraceId::new("t").expect("valid");
            Report::Typing(Typed { mark, conn, by, parties, version: 4, is_typing: true, trace })
        };
        marks.take(Report::Moved { session, version: 5, owner: Some(agent("b")) }).await;
        marks.take(typed(Side::User, Person::User(user.clone()))).await;
        marks.take(typed(Side::Agent, Person::Agent(agent("a")))).await;
        assert_eq!(*told.0.lock().expect("no panic"), [Person::Agent(agent("b"))], "A3");
    }
}
