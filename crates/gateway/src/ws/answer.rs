//! The direct answer to one frame.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use kefu_core::{ClientMsgId, ErrorCode, Seq, SessionId, TraceId};
use kefu_desk::DeskError;
use kefu_protocol::{CloseCode, ErrorFrame, Ref, ServerFrame};

use super::refused::NotAdmitted;
use crate::error::explain;
use crate::registry::Note;

/// The frame that is being answered.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) reference: Option<Ref>,
    pub(crate) client_msg_id: Option<ClientMsgId>,
    pub(crate) trace: TraceId,
}

/// What the connection does when a frame's work is done.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing to say: acks and typing.
    Silent,
    /// A frame, and what it tells about the connection's positions.
    Frame(Utf8Bytes, Note),
    /// `chat.connected`: then what was held back.
    Connected {
        texts: Vec<Utf8Bytes>,
        open_session: Option<SessionId>,
        /// The sessions that the connection takes part in.
        sessions: Vec<SessionId>,
        served: BTreeMap<SessionId, Seq>,
    },
    /// The connect failed; the client may try again, or is closed.
    NotConnected { text: Utf8Bytes, close: Option<CloseCode> },
}

impl Call {
    /// Writes the answer to this frame.
    pub(crate) fn encode(&self, frame: &ServerFrame) -> Utf8Bytes {
        frame.encode(self.reference.as_ref().map(Ref::as_str)).into()
    }

    /// A plain answer.
    pub(crate) fn frame(&self, frame: &ServerFrame) -> Answer {
        Answer::Frame(self.encode(frame), Note::None)
    }

    /// The refusal of this frame.
    pub(crate) fn refuse(&self, error: &DeskError) -> Answer {
        Answer::Frame(self.encode_refusal(error), Note::None)
    }

    /// The text of a refusal.
    pub(crate) fn encode_refusal(&self, error: &DeskError) -> Utf8Bytes {
        let refusal = explain(error, &self.trace);
        self.error(refusal.code, &refusal.message, refusal.retry_after)
    }

    /// The refusal of a send for rate or load.
    pub(crate) fn not_admitted(&self, why: &NotAdmitted) -> Utf8Bytes {
        self.error(why.code, "too much at once, try again later", Some(why.retry_after))
    }

    /// `chat.error`.
    pub(crate) fn error(
        &self,
        code: ErrorCode,
        message: &str,
        retry_after: Option<Duration>,
    ) -> Utf8Bytes {
        let frame = ErrorFrame::new(code, message, self.trace.clone())
            .with_client_msg_id(self.client_msg_id.clone());
        let frame = match retry_after {
            Some(after) => frame.with_retry_after(after),
            None => frame,
        };
        self.encode(&ServerFrame::Error(frame))
    }
}
