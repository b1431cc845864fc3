//! `chat.connect`: verify, register, answer (S1, M4); also renews an expiring token in place.

use std::sync::Arc;

use kefu_core::{Caller, ErrorCode, Person, Role};
use kefu_desk::{ConnectAnswer, ConnectRequest, DeskError, Intent};
use kefu_protocol::{
    AgentStatus, CloseCode, Connect, Connected, ConnectedParts, Limits, MessageObject, ServerFrame,
    SessionObject, Standing, session_object,
};
use kefu_upload::UploadPath;
use tokio::time::Instant;

use super::answer::{Answer, Call};
use super::connection::Connection;
use super::frames::overloaded;
use crate::limits::RetryAfter;
use crate::registry::{Note, Peer};
use crate::state::Gateway;

impl Connection {
    pub(super) fn connect(&mut self, connect: &Connect, call: Call) {
        if let Err(RetryAfter(retry_after)) = self.gateway.limits.connect(self.address) {
            let message = "too many connects from this address";
            let text = call.error(ErrorCode::RateLimited, message, Some(retry_after));
            self.outbound.answer(text, Note::None);
            return;
        }
        // After a restart everybody comes at once: who is not let in now is told when to come (L1).
        let Ok(permit) = Arc::clone(&self.gateway.budget).try_acquire_owned() else {
            self.outbound.answer(call.not_admitted(&overloaded()), Note::None);
            return;
        };
        let verified = match self.gateway.auth.verify(connect.token.as_str()) {
            Ok(verified) => verified,
            Err(error) => {
                self.refuse_identity(&call, &error.to_string());
                return;
            }
        };
        let is_other = |known: &Arc<Caller>| {
            known.person() != verified.caller.person() || known.role() != verified.caller.role()
        };
        if self.caller.as_ref().is_some_and(is_other) {
            self.refuse_identity(&call, "the token belongs to somebody else");
            return;
        }
        let life = verified.expires_at.since(self.gateway.desk.clock().now());
        self.timers.connected(Instant::now(), life);
        let caller = Arc::new(verified.caller);
        self.caller = Some(Arc::clone(&caller));
        // Held first, then registered: nothing that happens from here on is missed, and nothing
        // overtakes the answer (S1).
        self.outbound.hold();
        self.gateway.registry.add(Peer {
            conn: self.id,
            person: caller.person(),
            is_supervisor: caller.role() == Role::Supervisor,
            locale: connect.language(),
            outbound: Arc::clone(&self.outbound),
        });
        let request = request_of(connect, caller.role());
        let (gateway, id, frame) = (Arc::clone(&self.gateway), self.id, call.clone());
        self.work(
            async move {
                let _permit = permit;
                let answer = gateway.desk.connect(&caller, id, &request, &frame.trace).await;
                answered(&gateway, &caller, answer, &frame)
            },
            call,
        );
    }

    fn refuse_identity(&self, call: &Call, why: &str) {
        self.outbound.answer(call.error(ErrorCode::Unauthenticated, why, None), Note::None);
        self.outbound.close(CloseCode::Unauthenticated);
    }
}

fn request_of(connect: &Connect, role: Role) -> ConnectRequest {
    ConnectRequest {
        intent: match connect.intent {
            kefu_protocol::Intent::Consult => Intent::Consult,
            kefu_protocol::Intent::Resume => Intent::Resume,
        },
        source: connect.source.clone(),
        positions: connect.positions(role),
    }
}

fn answered(
    gateway: &Gateway,
    caller: &Caller,
    answer: Result<ConnectAnswer, DeskError>,
    call: &Call,
) -> Answer {
    match answer {
        Ok(answer) => {
            let text = call.encode(&ServerFrame::Connected(connected(gateway, caller, &answer)));
            // A console learns its own availability without asking: a reload shows it as it was.
            let status = answer.agent.as_ref().map(AgentStatus::from);
            let status = status.map(|s| ServerFrame::AgentStatus(s).encode(None).into());
            let owned = answer.owned.iter().map(|owned| owned.view.session.id);
            Answer::Connected {
                texts: [text].into_iter().chain(status).collect(),
                open_session: answer.session_id,
                sessions: answer.session_id.into_iter().chain(owned).collect(),
                served: answer.served,
            }
        }
        Err(error) => {
            let close = matches!(error, DeskError::TooManyConnections)
                .then_some(CloseCode::TooManyConnections);
            Answer::NotConnected { text: call.encode_refusal(&error), close }
        }
    }
}

fn connected(gateway: &Gateway, caller: &Caller, answer: &ConnectAnswer) -> Connected {
    let person: Person = caller.person();
    let sign = |path: &UploadPath| gateway.registry.sign(path);
    let unread = answer.unread.iter().map(|message| MessageObject::listed(message, &person, &sign));
    let config = &gateway.config;
    ConnectedParts {
        standing: standing(caller, answer),
        unread: kefu_core::Page { items: unread.collect(), has_more: answer.has_more },
        limits: Limits::new(config.max_chars, config.upload_bytes),
        heartbeat: config.heartbeat,
        server_time: gateway.desk.clock().now(),
    }
    .into()
}

fn standing(caller: &Caller, answer: &ConnectAnswer) -> Standing {
    match caller {
        Caller::User(_) => Standing::User(answer.session.as_ref().map(|view| {
            session_object(&view.session, view.agent.as_ref(), view.place, view.agents_online)
        })),
        Caller::Agent(_) => Standing::Agent(answer.owned.iter().map(owned_object).collect()),
        Caller::Supervisor(_) => Standing::Supervisor,
    }
}

fn owned_object(owned: &kefu_desk::OwnedSession) -> SessionObject {
    let view = &owned.view;
    session_object(&view.session, view.agent.as_ref(), view.place, view.agents_online).for_agent(
        &view.session,
        owned.unread_count,
        owned.note.clone(),
    )
}
