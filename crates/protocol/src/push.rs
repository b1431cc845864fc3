//! From a push of the domain to its frame.

use kefu_messaging::Push;

use crate::locale::Locale;
use crate::note::NoteObject;
use crate::server::ServerFrame;
use crate::server::agent::{AgentStatus, QueueList, SessionRemoved};
use crate::server::message::{MessageObject, PeerAck, SignLinks};
use crate::server::session::{QueuePosition, SessionAssigned, SessionEnded, SessionRequeued};
use crate::vocabulary::{Availability, EndedBy, Typing};

/// The frame of a push: the same for all connections it goes to, except that the offline notice is in the
/// connection's language. Serialise it once.
#[must_use]
pub fn frame_of_push(push: &Push, links: &dyn SignLinks, locale: Locale) -> ServerFrame {
    match push {
        Push::Message { message, attempt, own } => {
            ServerFrame::MessageNew(MessageObject::pushed(message, *attempt, *own, links))
        }
        Push::PeerAck { session_id, msg_id, seq, status, .. } => ServerFrame::PeerAck(PeerAck {
            msg_id: *msg_id,
            status: (*status).into(),
            session_id: *session_id,
            seq: *seq,
        }),
        Push::Typing { session_id, is_typing } => {
            ServerFrame::Typing(Typing { session_id: *session_id, is_typing: *is_typing })
        }
        Push::Assigned { session_id, agent } => ServerFrame::SessionAssigned(SessionAssigned {
            session_id: *session_id,
            agent_info: agent.into(),
        }),
        Push::Ended { session_id, ended_by, time } => ServerFrame::SessionEnded(SessionEnded {
            session_id: *session_id,
            ended_by: ended_by.as_ref().map(EndedBy::from),
            time: Some(*time),
        }),
        Push::Requeued { session_id, reason } => ServerFrame::SessionRequeued(SessionRequeued {
            session_id: *session_id,
            reason: (*reason).to_owned(),
        }),
        Push::OfflineNotice => ServerFrame::OfflineNotice(locale.into()),
        Push::QueuePosition { session_id, position, total } => {
            ServerFrame::QueuePosition(QueuePosition {
                session_id: *session_id,
                position: *position,
                total: *total,
            })
        }
        Push::SessionNew(offer) => ServerFrame::SessionNew(offer.into()),
        Push::SessionRemoved { session_id, reason } => {
            ServerFrame::SessionRemoved(SessionRemoved::new(*session_id, reason))
        }
        Push::QueueList { entries, total, version } => {
            ServerFrame::QueueList(QueueList::new(entries, *total, *version))
        }
        Push::AgentStatus { online, max_sessions, active_sessions } => {
            ServerFrame::AgentStatus(AgentStatus {
                status: Availability::when(*online),
                max_sessions: *max_sessions,
                active_sessions: *active_sessions,
            })
        }
        Push::Note { note, own } => ServerFrame::NoteNew(NoteObject::new(note, *own)),
    }
}
