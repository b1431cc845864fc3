//! What a waiting visitor is told (Q2): a place in line, or that nobody is online.

use kefu_core::Timestamp;
use kefu_core::limit::OFFLINE_NOTICE_EVERY;
use kefu_session::{Session, SessionVerdict, Status};

/// What a waiting visitor has to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Agents are online but full: a place in line.
    Queued,
    /// No agent is online: leave a message (CC-14).
    LeaveMessage,
}

impl Outlook {
    /// The outlook while `agents_online`.
    #[must_use]
    pub const fn when(agents_online: bool) -> Self {
        if agents_online { Self::Queued } else { Self::LeaveMessage }
    }
}

/// Decides whether the offline notice is due: once per session per 10 minutes, and again after every
/// requeue, which forgets the last one (Q2).
#[must_use]
pub fn decide_notice(session: &Session, now: Timestamp) -> SessionVerdict {
    if session.status != Status::Waiting {
        return SessionVerdict::Keep;
    }
    let told_lately = session
        .noticed_at
        .is_some_and(|told| now.since(told) < OFFLINE_NOTICE_EVERY && told <= now);
    if told_lately {
        return SessionVerdict::Keep;
    }
    let told = Session { noticed_at: Some(now), version: session.version + 1, ..session.clone() };
    SessionVerdict::Write(told, Vec::new())
}
