//! One connection's task: reads frames in order, runs their work, writes what comes out.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{SinkExt, StreamExt};
use kefu_core::limit::SERVER_PING;
use kefu_core::{Caller, ConnId, ErrorCode, SessionId};
use kefu_protocol::{CloseCode, ErrorFrame, Inbound, Ref, ServerFrame};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument as _;

use super::answer::{Answer, Call};
use super::frames::Overlap as _;
use super::refused::RefusedSends;
use super::timers::{Due, Timers};
use crate::registry::{Next, Note, Outbound};
use crate::state::Gateway;

/// Frames of one connection being worked on; beyond it the socket is not read (M6).
const PIPELINE: usize = 64;
/// Bytes written at a time.
const CHUNK: usize = 64 * 1_024;
/// Malformed frames per minute before the connection is closed (`protocol.md`).
const MALFORMED_PER_MINUTE: u32 = 20;
/// How long work under way, and writing its answers, may take when the process ends.
const FINISH_WITHIN: Duration = Duration::from_secs(2);
/// How long the peer is given to take a close frame.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Everything one connection's task owns.
pub(super) struct Connection {
    pub(super) gateway: Arc<Gateway>,
    pub(super) id: ConnId,
    pub(super) address: IpAddr,
    pub(super) outbound: Arc<Outbound>,
    pub(super) timers: Timers,
    /// Who this is; `None` until a token was accepted.
    pub(super) caller: Option<Arc<Caller>>,
    /// A visitor's open session, as far as this connection knows.
    pub(super) open_session: Option<SessionId>,
    pub(super) refused: RefusedSends,
    /// Work under way, answered in the order of its frames.
    pub(super) answers: FuturesOrdered<BoxFuture<'static, Answer>>,
    /// The work under way is one frame's that lets no other run beside it.
    alone: bool,
    /// A frame that must not start before the earlier ones are done; the socket rests meanwhile.
    waiting: Option<(Inbound, Call)>,
    malformed: (Instant, u32),
    socket: WebSocket,
}

/// Whether the task goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    End,
}

impl Connection {
    /// Serves a socket until it ends, then lets its person go.
    pub(super) async fn serve(gateway: Arc<Gateway>, socket: WebSocket, address: IpAddr) {
        let now = Instant::now();
        let mut connection = Self {
            id: gateway.next_conn(),
            outbound: gateway.registry.outbound(),
            timers: Timers::new(now, gateway.config.presence_ttl, SERVER_PING),
            caller: None,
            open_session: None,
            refused: RefusedSends::default(),
            answers: FuturesOrdered::new(),
            alone: false,
            waiting: None,
            malformed: (now, 0),
            gateway,
            address,
            socket,
        };
        metrics::gauge!("kefu_connections").increment(1.0);
        connection.run().await;
        connection.leave().await;
        metrics::gauge!("kefu_connections").decrement(1.0);
    }

    async fn run(&mut self) {
        let outbound = Arc::clone(&self.outbound);
        let closing = self.gateway.closing.clone();
        loop {
            self.start_waiting();
            let may_read = self.may_read();
            let deadline = self.timers.next();
            let flow = tokio::select! {
                biased;
                next = outbound.next(CHUNK) => match next {
                    Next::Frames(frames) => {
                        self.write(frames.into_iter().map(Message::Text)).await
                    }
                    Next::Close(CloseCode::Restart) => self.finish().await,
                    Next::Close(code) => self.close(code).await,
                },
                Some(answer) = self.answers.next(), if !self.answers.is_empty() => {
                    self.settle(answer);
                    Flow::On
                }
                // Who is nobody yet is not in the registry, which asks all others to go (L3):
                // no connect is begun after that.
                () = closing.cancelled(), if self.caller.is_none() => {
                    self.close(CloseCode::Restart).await
                }
                message = self.socket.recv(), if may_read => match message {
                    Some(Ok(message)) => self.receive(message),
                    Some(Err(_)) | None => Flow::End,
                },
                () = tokio::time::sleep_until(deadline) => self.tick().await,
            };
            if flow == Flow::End {
                return;
            }
        }
    }

    /// Lets go only after all work is done: a connect still under way must not take a lease that
    /// nobody gives back.
    async fn leave(&mut self) {
        while self.answers.next().await.is_some() {}
        let Some(caller) = self.caller.take() else { return };
        self.gateway.registry.remove(&caller.person(), self.id);
        let trace = self.gateway.next_trace();
        // Boxed: an idle connection would otherwise keep room for it all its life (T6).
        Box::pin(self.gateway.desk.disconnect(&caller, self.id, &trace)).await;
    }

    /// Under pressure the socket is not read: TCP tells the client to slow down (M6).
    fn may_read(&self) -> bool {
        self.waiting.is_none() && self.answers.len() < PIPELINE && !self.outbound.is_congested()
    }

    fn receive(&mut self, message: Message) -> Flow {
        if self.timers.alive(Instant::now()) {
            self.renew_lease();
        }
        match message {
            Message::Text(text) => self.receive_text(&text),
            Message::Binary(_) => {
                self.outbound.close(CloseCode::BinaryFrame);
                Flow::On
            }
            Message::Ping(_) | Message::Pong(_) => Flow::On,
            Message::Close(_) => Flow::End,
        }
    }

    fn receive_text(&mut self, text: &Utf8Bytes) -> Flow {
        if text.len() > self.gateway.config.frame_bytes {
            self.outbound.close(CloseCode::TooBig);
            return Flow::On;
        }
        let trace = self.gateway.next_trace();
        match Inbound::parse(text, self.gateway.config.max_chars) {
            Ok(inbound) => {
                let call =
                    Call { reference: inbound.reference.clone(), client_msg_id: None, trace };
                self.accept(inbound, call);
            }
            Err(error) => {
                let frame = ServerFrame::Error(ErrorFrame::of_frame(&error, trace));
                let reference = error.reference.as_ref().map(Ref::as_str);
                let text = frame.encode(reference).into();
                if !error.is_malformed && error.code != ErrorCode::Unauthenticated {
                    self.answer_in_turn(text);
                    return Flow::On;
                }
                self.outbound.answer(text, Note::None);
                if error.code == ErrorCode::Unauthenticated {
                    self.outbound.close(CloseCode::Unauthenticated);
                } else if self.too_many_malformed() {
                    self.outbound.close(CloseCode::Policy);
                }
            }
        }
        Flow::On
    }

    /// Sends and reports run side by side; everything else waits for what came before it, and lets
    /// nothing pass: an end never overtakes the send in front of it, nor a send the connect (B02).
    fn accept(&mut self, inbound: Inbound, call: Call) {
        let may_start = self.answers.is_empty() || (inbound.frame.may_overlap() && !self.alone);
        if may_start {
            self.start(inbound, call);
        } else {
            self.waiting = Some((inbound, call));
        }
    }

    fn start_waiting(&mut self) {
        if self.answers.is_empty()
            && let Some((inbound, call)) = self.waiting.take()
        {
            self.start(inbound, call);
        }
    }

    fn start(&mut self, inbound: Inbound, call: Call) {
        self.alone = !inbound.frame.may_overlap();
        self.begin(inbound.frame, call);
    }

    fn settle(&mut self, answer: Answer) {
        match answer {
            Answer::Silent => {}
            Answer::Frame(text, note) => self.outbound.answer(text, note),
            Answer::Connected { texts, open_session, sessions, served } => {
                self.open_session = open_session;
                self.outbound.release(texts, &sessions, &served);
            }
            Answer::NotConnected { text, close } => self.not_connected(text, close),
        }
    }

    fn not_connected(&mut self, text: Utf8Bytes, close: Option<CloseCode>) {
        if let Some(caller) = self.caller.take() {
            self.gateway.registry.remove(&caller.person(), self.id);
        }
        self.outbound.release(vec![text], &[], &BTreeMap::new());
        match close {
            Some(code) => self.outbound.close(code),
            None => self.timers.disconnected(Instant::now()),
        }
    }

    async fn tick(&mut self) -> Flow {
        match self.timers.due(Instant::now()) {
            None => Flow::On,
            Some(Due::NoConnect) => self.close(CloseCode::NoConnect).await,
            Some(Due::Silence) => self.close(CloseCode::HeartbeatTimeout).await,
            Some(Due::NotRenewed) => self.close(CloseCode::TokenExpired).await,
            Some(Due::TokenExpired) => {
                let trace = self.gateway.next_trace();
                let call = Call { reference: None, client_msg_id: None, trace };
                let message = "the token has expired, connect again with a fresh one";
                self.outbound
                    .answer(call.error(ErrorCode::TokenExpired, message, None), Note::None);
                Flow::On
            }
            Some(Due::Ping) => self.write([Message::Ping(axum::body::Bytes::new())]).await,
        }
    }

    /// Writes everything that one wake-up found, then flushes once.
    async fn write(&mut self, messages: impl IntoIterator<Item = Message>) -> Flow {
        let outbound = Arc::clone(&self.outbound);
        let socket = &mut self.socket;
        let write = async {
            for message in messages {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        // A peer that takes nothing is given up after the time that makes it count as gone, or at
        // once when its queue overflows (L1).
        let written = tokio::select! {
            written = timeout(self.gateway.config.presence_ttl, write) => matches!(written, Ok(Ok(()))),
            () = outbound.doomed() => false,
        };
        if written { Flow::On } else { self.close(CloseCode::SlowConsumer).await }
    }

    /// Ends for a restart: what was begun is answered first, and nothing more is read (L3).
    async fn finish(&mut self) -> Flow {
        let deadline = Instant::now() + FINISH_WITHIN;
        while let Ok(Some(answer)) = timeout_at(deadline, self.answers.next()).await {
            self.settle(answer);
        }
        let outbound = Arc::clone(&self.outbound);
        while let Next::Frames(frames) = outbound.next(CHUNK).await {
            let write = self.write(frames.into_iter().map(Message::Text));
            if timeout_at(deadline, write).await != Ok(Flow::On) {
                return Flow::End;
            }
        }
        self.close(CloseCode::Restart).await
    }

    /// Says why, then waits a moment for the peer to take it: dropping a socket with unread data
    /// would reset it and lose the code.
    async fn close(&mut self, code: CloseCode) -> Flow {
        let frame = CloseFrame { code: code.code(), reason: code.reason().into() };
        let socket = &mut self.socket;
        let goodbye = async {
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = socket.recv().await {}
            }
        };
        // Whether it got through makes no difference to what happens next.
        let _ = timeout(CLOSE_WITHIN, goodbye).await;
        metrics::counter!("kefu_closed_total", "code" => code.code().to_string()).increment(1);
        Flow::End
    }

    fn too_many_malformed(&mut self) -> bool {
        let now = Instant::now();
        if now.duration_since(self.malformed.0) > Duration::from_secs(60) {
            self.malformed = (now, 0);
        }
        self.malformed.1 += 1;
        self.malformed.1 >= MALFORMED_PER_MINUTE
    }

    fn renew_lease(&self) {
        let Some(caller) = self.caller.clone() else { return };
        let (desk, id) = (Arc::clone(&self.gateway.desk), self.id);
        self.gateway.tracker.spawn(async move { desk.renew(&caller.person(), id).await });
    }

    /// Answers a frame that is refused at once, behind the answers that are still to come: a send's
    /// answer never overtakes an earlier send's (M6).
    pub(super) fn answer_in_turn(&mut self, text: Utf8Bytes) {
        let answer = Answer::Frame(text, Note::None);
        self.answers.push_back(Box::pin(std::future::ready(answer)));
    }

    /// Runs a use case in a task of its own, so that a dropped socket never cancels it half-way.
    pub(super) fn work(&mut self, work: impl Future<Output = Answer> + Send + 'static, call: Call) {
        let span = tracing::info_span!("frame", trace_id = %call.trace);
        let task = self.gateway.tracker.spawn(work.instrument(span));
        self.answers.push_back(Box::pin(async move {
            match task.await {
                Ok(answer) => answer,
                Err(failure) => {
                    tracing::error!(trace_id = %call.trace, %failure, "frame handler failed");
                    let text = call.error(ErrorCode::Internal, "the request failed", None);
                    Answer::Frame(text, Note::None)
                }
            }
        }));
    }
}
