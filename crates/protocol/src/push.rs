//! From a push of the domain to its frame.

use kefu_core::SessionId;
use kefu_messaging::{Push, Side};

use crate::locale::Locale;
use crate::note::NoteObject;
use crate::page::PageShown;
use crate::server::ServerFrame;
use crate::server::agent::{AgentStatus, QueueList, SessionRemoved};
use crate::server::message::{MessageObject, PeerAck, SignLinks};
use crate::server::session::{
    QueuePosition, SessionAssigned, SessionEnded, SessionRated, SessionRead, SessionRequeued,
};
use crate::vocabulary::{Availability, EndedBy, SenderType, Typing};

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
        Push::Typing { session_id, is_typing } => typing(*session_id, *is_typing, None),
        Push::WatchedTyping { session_id, is_typing, by } => {
            typing(*session_id, *is_typing, Some(*by))
        }
        Push::Read { session_id, seq } => {
            ServerFrame::SessionRead(SessionRead { session_id: *session_id, seq: *seq })
        }
        Push::Page { session_id, page, time } => ServerFrame::Page(PageShown {
            session_id: *session_id,
            url: page.url.clone(),
            title: page.title.clone(),
            language: page.language.clone(),
            time: *time,
        }),
        Push::Board(figures) => ServerFrame::Board(figures.as_ref().into()),
        Push::Assigned { session_id, agent } => ServerFrame::SessionAssigned(SessionAssigned {
            session_id: *session_id,
            agent_info: agent.into(),
        }),
        Push::Ended { session_id, ended_by, time } => ServerFrame::SessionEnded(SessionEnded {
            session_id: *session_id,
            ended_by: ended_by.as_ref().map(EndedBy::from),
            time: Some(*time),
        }),
        Push::Rated { session_id, rating } => {
            ServerFrame::SessionRated(SessionRated::new(*session_id, rating))
        }
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

fn typing(session_id: SessionId, is_typing: bool, by: Option<Side>) -> ServerFrame {
    let sender_type = by.map(|side| match side {
        Side::User => SenderType::User,
        Side::Agent => SenderType::Agent,
    });
    ServerFrame::Typing(Typing { session_id, is_typing, sender_type })
}
