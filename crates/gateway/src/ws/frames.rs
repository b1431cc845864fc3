//! From a frame to its use case, and from the outcome to the answer.

use std::future::Future;
use std::sync::Arc;

use kefu_assignment::Origin;
use kefu_core::{Caller, ConnId, ErrorCode, Seq, SessionId};
use kefu_desk::{Desk, SendRequest};
use kefu_messaging::{Receipt, SessionOffer, Window};
use kefu_protocol::{
    Ack, AckStatus, AgentList, AgentStatus, ClientFrame, CloseCode, History, HistoryRequest, Pong,
    QueueList, Rate, SendMessage, ServerAck, ServerFrame, SessionEnded, SessionNew, SessionRated,
    SessionTransferred, Transfer,
};
use kefu_session::RatingRequest;
use kefu_upload::UploadPath;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Answer, Call};
use super::connection::Connection;
use super::refused::NotAdmitted;
use crate::error::RETRY_AFTER;
use crate::limits::RetryAfter;
use crate::registry::{Note, Outbound};

/// Which frames may run side by side with the ones before them.
pub(super) trait Overlap {
    /// Whether the frame needs no other to be done first.
    fn may_overlap(&self) -> bool;
}

impl Overlap for ClientFrame {
    fn may_overlap(&self) -> bool {
        match self {
            Self::Send(_) | Self::Ack(_) | Self::Ping(_) => true,
            // Side by side, "types" and "types no more" could change places.
            Self::Typing(_)
            | Self::Connect(_)
            | Self::End(_)
            | Self::Rate(_)
            | Self::AgentOnline(_)
            | Self::AgentOffline(_)
            | Self::Transfer(_)
            | Self::History(_)
            | Self::QueueList(_)
            | Self::Claim(_)
            | Self::AgentList(_)
            | Self::Watch(_)
            | Self::Unwatch(_)
            | Self::Board(_)
            | Self::Explain(_)
            | Self::Page(_)
            | Self::SessionsList(_)
            | Self::NoteAdd(_)
            | Self::NoteList(_)
            | Self::CannedList(_)
            | Self::CannedPut(_)
            | Self::CannedDelete(_) => false,
        }
    }
}

/// A verified caller's frame on its way to a use case.
pub(super) struct Case {
    pub(super) desk: Arc<Desk>,
    pub(super) caller: Arc<Caller>,
    pub(super) conn: ConnId,
    pub(super) origin: Origin,
    pub(super) call: Call,
    outbound: Arc<Outbound>,
    /// Part of the process's budget, given back when the work is done (L1).
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Starts the work of a frame.
    pub(super) fn begin(&mut self, frame: ClientFrame, call: Call) {
        let frame = match frame {
            ClientFrame::Connect(connect) => return self.connect(&connect, call),
            other => other,
        };
        let Some(caller) = self.caller.clone() else {
            self.outbound.close(CloseCode::NoConnect);
            return;
        };
        match frame {
            ClientFrame::Connect(_) => {}
            ClientFrame::Send(send) => self.send(send, &caller, call),
            ClientFrame::Ping(_) => {
                let pong = Pong { server_time: self.gateway.desk.clock().now() };
                self.outbound.answer(call.encode(&ServerFrame::Pong(pong)), Note::None);
            }
            ClientFrame::Ack(ack) => self.perform(caller, call, move |case| case.acknowledge(ack)),
            ClientFrame::Typing(typing) => {
                let conn = self.id;
                self.perform(caller, call, move |case| async move {
                    let (session, is_typing) = (typing.session_id, typing.is_typing);
                    let trace = &case.call.trace;
                    match case.desk.typing(&case.caller, conn, session, is_typing, trace).await {
                        Ok(()) => Answer::Silent,
                        Err(error) => case.call.refuse(&error),
                    }
                });
            }
            ClientFrame::End(end) => {
                self.perform(caller, call, move |case| case.end(end.session_id));
            }
            ClientFrame::Rate(rate) => self.perform(caller, call, move |case| case.rate(rate)),
            ClientFrame::AgentOnline(online) => {
                self.perform(caller, call, move |case| case.online(online.max_sessions));
            }
            ClientFrame::AgentOffline(offline) => {
                self.perform(caller, call, move |case| case.offline(offline.requeue));
            }
            ClientFrame::Transfer(transfer) => {
                self.perform(caller, call, move |case| case.transfer(transfer));
            }
            ClientFrame::History(history) => self.history(&history, caller, call),
            ClientFrame::QueueList(_) => self.perform(caller, call, Case::queue_list),
            ClientFrame::Claim(claim) => {
                self.perform(caller, call, move |case| case.claim(claim.session_id));
            }
            ClientFrame::AgentList(_) => self.perform(caller, call, Case::agent_list),
            ClientFrame::Watch(watch) => {
                self.perform(caller, call, move |case| case.watch(watch));
            }
            ClientFrame::Unwatch(watch) => {
                self.perform(caller, call, move |case| case.unwatch(watch));
            }
            ClientFrame::Board(board) => {
                self.perform(caller, call, move |case| case.board(board));
            }
            ClientFrame::Explain(explain) => {
                self.perform(caller, call, move |case| case.explain(explain.session_id));
            }
            ClientFrame::Page(page) => {
                self.perform_seldom(caller, call, move |case| case.page(page));
            }
            ClientFrame::SessionsList(list) => {
                let gateway = Arc::clone(&self.gateway);
                self.perform(caller, call, move |case| case.list_sessions(list, gateway));
            }
            ClientFrame::NoteAdd(note) => {
                let call = Call { client_msg_id: note.client_msg_id.clone(), ..call };
                self.perform_seldom(caller, call, move |case| case.add_note(note));
            }
            ClientFrame::NoteList(list) => {
                self.perform(caller, call, move |case| case.list_notes(list));
            }
            ClientFrame::CannedList(list) => {
                self.perform(caller, call, move |case| case.list_canned(list));
            }
            ClientFrame::CannedPut(put) => {
                self.perform_seldom(caller, call, move |case| case.put_canned(put));
            }
            ClientFrame::CannedDelete(reply) => {
                self.perform(caller, call, move |case| case.delete_canned(reply));
            }
        }
    }

    /// Runs a use case within the process's budget.
    fn perform<W>(&mut self, caller: Arc<Caller>, call: Call, work: impl FnOnce(Case) -> W)
    where
        W: Future<Output = Answer> + Send + 'static,
    {
        let Ok(permit) = Arc::clone(&self.gateway.budget).try_acquire_owned() else {
            let text = call.not_admitted(&overloaded());
            self.outbound.answer(text, Note::None);
            return;
        };
        let case = Case {
            desk: Arc::clone(&self.gateway.desk),
            caller,
            conn: self.id,
            origin: Origin(Some(self.id)),
            call: call.clone(),
            outbound: Arc::clone(&self.outbound),
            _permit: permit,
        };
        self.work(work(case), call);
    }

    /// As [`Self::perform`], for what a person may write no faster than messages (L2).
    fn perform_seldom<W>(&mut self, caller: Arc<Caller>, call: Call, work: impl FnOnce(Case) -> W)
    where
        W: Future<Output = Answer> + Send + 'static,
    {
        match self.gateway.limits.send(&caller.person()) {
            Ok(()) => self.perform(caller, call, work),
            Err(wait) => self.outbound.answer(call.not_admitted(&rate_limited(wait)), Note::None),
        }
    }

    /// Sends are queued here and now, in the order of their frames; their answers follow in that
    /// order (M6).
    fn send(&mut self, send: SendMessage, caller: &Caller, call: Call) {
        let call = Call { client_msg_id: Some(send.client_msg_id.clone()), ..call };
        let session = send.session_id.or(self.open_session);
        let key = send.client_msg_id.clone();
        let permit = match self.admit(caller, session, &send) {
            Ok(permit) => permit,
            Err(why) => {
                self.refused.note(session, &key, &why);
                self.answer_in_turn(call.not_admitted(&why));
                return;
            }
        };
        let request = SendRequest {
            session_id: send.session_id,
            client_msg_id: send.client_msg_id,
            draft: send.draft,
            open_session: self.open_session,
        };
        match self.gateway.desk.send(caller, Some(self.id), request, &call.trace) {
            Ok(pending) => {
                self.refused.clear(session);
                self.answers.push_back(Box::pin(async move {
                    let _permit = permit;
                    match pending.await {
                        Ok(stored) => {
                            let note = Note::Stored(stored.message.session_id, stored.message.seq);
                            let ack = ServerFrame::ServerAck(ServerAck::from(&stored));
                            Answer::Frame(call.encode(&ack), note)
                        }
                        Err(error) => call.refuse(&error.into()),
                    }
                }));
            }
            Err(error) => {
                if error.code() == ErrorCode::Overloaded {
                    self.refused.note(session, &key, &overloaded());
                } else {
                    // Refused for good: this key does not come again, and holds nobody up.
                    self.refused.clear(session);
                }
                self.answer_in_turn(call.encode_refusal(&error));
            }
        }
    }

    fn admit(
        &self,
        caller: &Caller,
        session: Option<SessionId>,
        send: &SendMessage,
    ) -> Result<OwnedSemaphorePermit, NotAdmitted> {
        self.refused.check(session, &send.client_msg_id)?;
        self.gateway.limits.send(&caller.person()).map_err(rate_limited)?;
        Arc::clone(&self.gateway.budget).try_acquire_owned().map_err(|_| overloaded())
    }

    fn history(&mut self, request: &HistoryRequest, caller: Arc<Caller>, call: Call) {
        let gateway = Arc::clone(&self.gateway);
        let HistoryRequest { session_id, window, limit } = *request;
        self.perform(caller, call, move |case| async move {
            match case.desk.history(&case.caller, session_id, window, limit).await {
                Err(error) => case.call.refuse(&error),
                Ok(page) => {
                    let sign = |path: &UploadPath| gateway.registry.sign(path);
                    let person = case.caller.person();
                    let last = page.items.last().map(|message| message.seq);
                    let note = caught_up(session_id, window, last, page.has_more);
                    let history = History::new(session_id, &page, &person, &sign);
                    let text = case.call.encode(&ServerFrame::History(history));
                    Answer::Frame(text, note)
                }
            }
        });
    }
}

/// A client that read upwards to the end has everything up to there (M5).
fn caught_up(session: SessionId, window: Window, last: Option<Seq>, has_more: bool) -> Note {
    match window {
        Window::After(seq) if !has_more => Note::CaughtUp(session, last.unwrap_or(seq)),
        Window::After(_) | Window::Before(_) => Note::None,
    }
}

pub(super) const fn overloaded() -> NotAdmitted {
    NotAdmitted { code: ErrorCode::Overloaded, retry_after: RETRY_AFTER }
}

const fn rate_limited(RetryAfter(retry_after): RetryAfter) -> NotAdmitted {
    NotAdmitted { code: ErrorCode::RateLimited, retry_after }
}

impl Case {
    async fn acknowledge(self, ack: Ack) -> Answer {
        let receipt = match ack.status {
            AckStatus::Delivered => Receipt::Delivered,
            AckStatus::Read => Receipt::Read,
        };
        let Ack { msg_id, cumulative, .. } = ack;
        let trace = &self.call.trace;
        match self
            .desk
            .acknowledge(&self.caller, self.origin.0, msg_id, receipt, cumulative, trace)
            .await
        {
            Ok(()) => Answer::Silent,
            Err(error) => self.call.refuse(&error),
        }
    }

    async fn end(self, session: SessionId) -> Answer {
        let ended = self.desk.end(&self.caller, session, self.origin, &self.call.trace).await;
        match ended {
            Ok(ended) => {
                let frame = ServerFrame::SessionEnded(SessionEnded::from(&ended));
                Answer::Frame(self.call.encode(&frame), Note::Over(session))
            }
            Err(error) => self.call.refuse(&error),
        }
    }

    async fn rate(self, rate: Rate) -> Answer {
        let request = RatingRequest { score: rate.rating, comment: rate.content };
        let session = rate.session_id;
        let rated = self.desk.rate(&self.caller, session, &request, &self.call.trace).await;
        self.answer(
            rated.map(|rating| ServerFrame::SessionRated(SessionRated::new(session, &rating))),
        )
    }

    async fn online(self, max_sessions: u32) -> Answer {
        let online =
            self.desk.agent_online(&self.caller, max_sessions, self.origin, &self.call.trace).await;
        self.answer(online.map(|agent| ServerFrame::AgentStatus(AgentStatus::from(&agent))))
    }

    async fn offline(self, requeue: bool) -> Answer {
        let offline =
            self.desk.agent_offline(&self.caller, requeue, self.origin, &self.call.trace).await;
        self.answer(offline.map(|agent| ServerFrame::AgentStatus(AgentStatus::from(&agent))))
    }

    async fn transfer(self, transfer: Transfer) -> Answer {
        let Transfer { session_id, target_admin_id, note } = transfer;
        let moved = self
            .desk
            .transfer(
                &self.caller,
                session_id,
                &target_admin_id,
                note,
                self.origin,
                &self.call.trace,
            )
            .await;
        let answer = SessionTransferred { session_id, target_admin_id };
        self.answer(moved.map(|()| ServerFrame::SessionTransferred(answer)))
    }

    async fn claim(self, session: SessionId) -> Answer {
        // A claim runs alone, so that its answer overtakes no other one (M6).
        let give = |offer: &SessionOffer| {
            let frame = ServerFrame::SessionNew(SessionNew::from(offer));
            self.outbound.answer(self.call.encode(&frame), Note::Given(session, offer.last_seq));
        };
        let claim = self.desk.claim(&self.caller, session, self.origin, &self.call.trace, give);
        match claim.await {
            Ok(()) => Answer::Silent,
            Err(error) => self.call.refuse(&error),
        }
    }

    async fn queue_list(self) -> Answer {
        let list = self.desk.queue_list(&self.caller).await;
        self.answer(list.map(|news| {
            ServerFrame::QueueList(QueueList::new(&news.entries, news.total, news.version))
        }))
    }

    async fn agent_list(self) -> Answer {
        let agents = self.desk.agent_list(&self.caller).await;
        self.answer(agents.map(|agents| ServerFrame::AgentList(AgentList::new(&agents))))
    }

    pub(super) fn answer(&self, outcome: Result<ServerFrame, kefu_desk::DeskError>) -> Answer {
        match outcome {
            Ok(frame) => self.call.frame(&frame),
            Err(error) => self.call.refuse(&error),
        }
    }
}
