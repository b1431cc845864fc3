//! Who owns a session now, as far as the events of this process tell.

use std::collections::HashMap;

use kefu_core::{AdminId, SessionId};

/// The newest known owner of each open session.
///
/// Two commits may be handed over in the other order; by the session's version an older message
/// still goes to whoever owns the session now, never to an agent who lost it (A3).
#[derive(Default)]
pub(crate) struct Owners {
    newest: HashMap<SessionId, (i64, Option<AdminId>)>,
}

impl Owners {
    pub(crate) fn note(&mut self, session: SessionId, version: i64, owner: Option<&AdminId>) {
        let entry = self.newest.entry(session).or_insert((0, None));
        if entry.0 < version {
            *entry = (version, owner.cloned());
        }
    }

    pub(crate) fn owner(
        &self,
        session: SessionId,
        version: i64,
        at_commit: Option<AdminId>,
    ) -> Option<AdminId> {
        match self.newest.get(&session) {
            Some((newer, owner)) if *newer > version => owner.clone(),
            Some(_) | None => at_commit,
        }
    }

    pub(crate) fn forget(&mut self, session: SessionId) {
        self.newest.remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_handed_over_late_goes_to_the_newest_owner() {
        let session = SessionId::new(1).expect("positive");
        let (old, new) = (AdminId::new("a").ok(), AdminId::new("b").ok());
        let mut owners = Owners::default();
        owners.note(session, 2, old.as_ref());
        assert_eq!(owners.owner(session, 3, old.clone()), old);
        owners.note(session, 4, new.as_ref());
        assert_eq!(owners.owner(session, 3, old.clone()), new, "A3");
        owners.note(session, 2, old.as_ref());
        assert_eq!(owners.owner(session, 3, old), new);
    }
}
