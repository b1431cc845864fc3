//! Who owns a session now, as far as the events heard by this process tell.

use std::collections::{HashMap, VecDeque};

use kefu_core::{AdminId, SessionId};

/// Changes of owners remembered: far more than can happen between two events that overtook each other.
const REMEMBERED: usize = 16_384;

/// The newest known owner of the sessions that changed hands lately, ended ones among them.
///
/// Two commits may be handed over in the other order; by the session's version an older message
/// still goes to whoever owns the session now, never to an agent who lost it (A3).
#[derive(Default)]
pub(crate) struct Owners {
    newest: HashMap<SessionId, (i64, Option<AdminId>)>,
    order: VecDeque<(SessionId, i64)>,
}

impl Owners {
    /// From `version` on the session is `owner`'s; after its end, or while it waits, nobody's.
    pub(crate) fn note(&mut self, session: SessionId, version: i64, owner: Option<&AdminId>) {
        let known = self.newest.get(&session).map_or(0, |(known, _)| *known);
        if known >= version {
            return;
        }
        self.newest.insert(session, (version, owner.cloned()));
        self.order.push_back((session, version));
        if self.order.len() > REMEMBERED {
            self.forget_oldest();
        }
    }

    /// Who owns the session now, if it changed hands after `version`.
    pub(crate) fn since(&self, session: SessionId, version: i64) -> Option<Option<&AdminId>> {
        let (newest, owner) = self.newest.get(&session)?;
        (*newest > version).then_some(owner.as_ref())
    }

    pub(crate) fn owner(
        &self,
        session: SessionId,
        version: i64,
        at_commit: Option<AdminId>,
    ) -> Option<AdminId> {
        self.since(session, version).map_or(at_commit, Option::<&AdminId>::cloned)
    }

    fn forget_oldest(&mut self) {
        let Some((session, version)) = self.order.pop_front() else { return };
        if self.newest.get(&session).is_some_and(|(newest, _)| *newest == version) {
            self.newest.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(raw: i64) -> SessionId {
        SessionId::new(raw).expect("positive")
    }

    #[test]
    fn a_message_handed_over_late_goes_to_the_newest_owner() {
        let session = session(1);
        let (old, new) = (AdminId::new("a").ok(), AdminId::new("b").ok());
        let mut owners = Owners::default();
        owners.note(session, 2, old.as_ref());
        assert_eq!(owners.owner(session, 3, old.clone()), old);
        owners.note(session, 4, new.as_ref());
        assert_eq!(owners.owner(session, 3, old.clone()), new, "A3");
        owners.note(session, 2, old.as_ref());
        assert_eq!(owners.owner(session, 3, old.clone()), new);
        owners.note(session, 5, None);
        assert_eq!(owners.owner(session, 3, old), None, "A3: the end lifts nothing");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut owners = Owners::default();
        let admin = AdminId::new("a").ok();
        for raw in 1..=40_000 {
            owners.note(session(raw), 2, admin.as_ref());
            owners.note(session(1), 2 + raw, admin.as_ref());
        }
        assert!(owners.newest.len() <= REMEMBERED && owners.order.len() <= REMEMBERED);
        assert_eq!(owners.since(session(1), 2), Some(admin.as_ref()), "changed lately");
    }
}
