//! Who owns a session now, as far as the events heard by this process tell.

use std::collections::{HashMap, VecDeque};

use kefu_core::{AdminId, Person, SessionId};

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
    /// From `version` on the session is `owner`'s, after its end who had it then; while it waits, nobody's.
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

    /// Notes that the session is `admin`'s from `version` on, unless a newer change gave it to somebody
    /// else; says whether it is theirs.
    pub(crate) fn take(&mut self, session: SessionId, version: i64, admin: &AdminId) -> bool {
        self.note(session, version, Some(admin));
        self.since(session, version).is_none_or(|owner| owner == Some(admin))
    }

    pub(crate) fn owner(
        &self,
        session: SessionId,
        version: i64,
        at_commit: Option<AdminId>,
    ) -> Option<AdminId> {
        self.since(session, version).map_or(at_commit, Option::<&AdminId>::cloned)
    }

    /// Whether `person` is an agent whose session it is not, by the newest change told here (A3). Should
    /// they have it again by a change not told yet, they get what they lack with it.
    pub(crate) fn bar(&self, session: SessionId, person: &Person) -> bool {
        let Person::Agent(admin) = person else { return false };
        self.since(session, 0).is_some_and(|owner| owner != Some(admin))
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
        assert_eq!(owners.owner(session, 3, old), None, "it waits");
    }

    #[test]
    fn only_an_agent_known_to_have_lost_it_is_barred() {
        let (old, new) = (AdminId::new("a").expect("valid"), AdminId::new("b").expect("valid"));
        let user = Person::User(kefu_core::UserId::new("u").expect("valid"));
        let mut owners = Owners::default();
        let barred = |owners: &Owners| {
            [&old, &new].map(|admin| owners.bar(session(1), &Person::Agent(admin.clone())))
        };
        assert_eq!(barred(&owners), [false, false], "nothing is known");
        owners.note(session(1), 2, Some(&old));
        owners.note(session(1), 4, Some(&new));
        assert_eq!(barred(&owners), [true, false], "A3");
        owners.note(session(1), 5, None);
        assert_eq!((barred(&owners), owners.bar(session(1), &user)), ([true, true], false));
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
