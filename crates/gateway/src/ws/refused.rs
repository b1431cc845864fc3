//! Keeping a user's own order under pressure (M6): after a send of a session was refused for rate or
//! load, its later ones are refused too until that very key comes again.

use std::collections::VecDeque;
use std::time::Duration;

use kefu_core::{ClientMsgId, ErrorCode, SessionId};

/// Sessions remembered per connection. Far more than anybody takes part in: beyond it a client names
/// sessions at random, and the oldest is forgotten.
const SESSIONS: usize = 128;

/// Why a send was not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotAdmitted {
    pub(crate) code: ErrorCode,
    pub(crate) retry_after: Duration,
}

/// The first refused send of each session of one connection.
#[derive(Debug, Default)]
pub(crate) struct RefusedSends {
    first: VecDeque<(Option<SessionId>, ClientMsgId, NotAdmitted)>,
}

impl RefusedSends {
    /// Refuses a send that would overtake an earlier refused one of its session.
    pub(crate) fn check(
        &self,
        session: Option<SessionId>,
        key: &ClientMsgId,
    ) -> Result<(), NotAdmitted> {
        let blocked = self.first.iter().find(|(s, first, _)| *s == session && first != key);
        blocked.map_or(Ok(()), |(_, _, why)| Err(why.clone()))
    }

    /// Notes a refused send, unless an earlier one of its session waits already.
    pub(crate) fn note(
        &mut self,
        session: Option<SessionId>,
        key: &ClientMsgId,
        why: &NotAdmitted,
    ) {
        if self.first.iter().any(|(s, _, _)| *s == session) {
            return;
        }
        if self.first.len() == SESSIONS {
            self.first.pop_front();
        }
        self.first.push_back((session, key.clone(), why.clone()));
    }

    /// The send was admitted.
    pub(crate) fn clear(&mut self, session: Option<SessionId>) {
        self.first.retain(|(s, _, _)| *s != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_sends_wait_for_the_refused_key() {
        let key = |text: &str| ClientMsgId::new(text).expect("valid");
        let session = SessionId::new(1).ok();
        let why =
            NotAdmitted { code: ErrorCode::RateLimited, retry_after: Duration::from_millis(50) };
        let mut refused = RefusedSends::default();
        refused.note(session, &key("2"), &why);
        refused.note(session, &key("3"), &why);
        assert_eq!(refused.check(session, &key("3")), Err(why), "M6");
        assert_eq!(refused.check(session, &key("2")), Ok(()));
        assert_eq!(refused.check(SessionId::new(2).ok(), &key("3")), Ok(()));
        refused.clear(session);
        assert_eq!(refused.check(session, &key("3")), Ok(()));
    }

    #[test]
    fn naming_sessions_at_random_costs_no_memory() {
        let key = ClientMsgId::new("k").expect("valid");
        let why = NotAdmitted { code: ErrorCode::RateLimited, retry_after: Duration::ZERO };
        let mut refused = RefusedSends::default();
        for id in 1..=10_000 {
            refused.note(SessionId::new(id).ok(), &key, &why);
        }
        assert_eq!(refused.first.len(), SESSIONS);
    }
}
