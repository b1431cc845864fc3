//! `cg_chat_session`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use kefu_core::{AdminId, SessionId, StoreFault, UserId};
use kefu_messaging::Tip;
use kefu_session::{Session, Status};

use super::{ensure, ensure_unique};

/// Sessions by id, with the indexes of `semantics.md`.
#[derive(Default)]
pub(crate) struct SessionTable {
    rows: BTreeMap<SessionId, Session>,
    by_user: HashMap<UserId, BTreeSet<SessionId>>,
    /// Unique where the status is waiting or active (S1).
    open: HashMap<UserId, SessionId>,
    /// Where the status is waiting, in the order of the line (Q1).
    waiting: BTreeSet<(Reverse<i64>, SessionId)>,
    /// Where the status is active.
    owned: HashMap<AdminId, BTreeSet<SessionId>>,
}

impl SessionTable {
    pub(crate) fn find(&self, id: SessionId) -> Option<&Session> {
        self.rows.get(&id)
    }

    pub(crate) fn find_open(&self, user: &UserId) -> Option<&Session> {
        self.open.get(user).and_then(|id| self.rows.get(id))
    }

    /// The user's ended session with the largest id.
    pub(crate) fn find_latest_ended(&self, user: &UserId) -> Option<&Session> {
        let newest_first = self.ids_of_user(user).into_iter().flatten().rev();
        newest_first.filter_map(|id| self.rows.get(id)).find(|session| !session.is_open())
    }

    pub(crate) fn ids_of_user(&self, user: &UserId) -> Option<&BTreeSet<SessionId>> {
        self.by_user.get(user)
    }

    pub(crate) fn ids_owned_by(&self, admin: &AdminId) -> Option<&BTreeSet<SessionId>> {
        self.owned.get(admin)
    }

    /// The agent's active sessions, by id.
    pub(crate) fn owned_by(&self, admin: &AdminId) -> impl Iterator<Item = &Session> {
        self.ids_owned_by(admin).into_iter().flatten().filter_map(|id| self.rows.get(id))
    }

    /// Those who wait or are served, above `after`, by id.
    pub(crate) fn open_after(&self, after: Option<SessionId>) -> impl Iterator<Item = &Session> {
        let above = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range((above, Bound::Unbounded)).map(|(_, session)| session);
        rows.filter(|session| session.is_open())
    }

    /// All below `before`, the newest first.
    pub(crate) fn newest_below(&self, before: Option<SessionId>) -> impl Iterator<Item = &Session> {
        let below = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range((Bound::Unbounded, below)).rev().map(|(_, session)| session)
    }

    /// Those who wait, in the order of the line.
    pub(crate) fn line(&self) -> impl Iterator<Item = &Session> {
        self.waiting.iter().filter_map(|(_, id)| self.rows.get(id))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many stand before a waiting session.
    pub(crate) fn ahead_of(&self, session: &Session) -> usize {
        self.waiting.range(..line_key(session)).count()
    }

    /// What the CHECKs and unique keys say once all of `changed` were written.
    pub(crate) fn check(&self, changed: &[Session]) -> Result<(), StoreFault> {
        changed.iter().try_for_each(check_row)?;
        ensure_unique(changed.iter().map(|s| s.id), "a session is written twice")?;
        let open = || changed.iter().filter(|session| session.is_open());
        ensure_unique(open().map(|s| &s.user.user_id), "a user has two open sessions")?;
        let taken = |session: &Session| {
            // A holder that is itself written either ends here or was counted above.
            let holder = self.open.get(&session.user.user_id);
            holder.is_some_and(|id| changed.iter().all(|other| other.id != *id))
        };
        ensure(!open().any(taken), "a user has two open sessions")
    }

    /// That `changed` are rows of the scope that exist: nothing else was locked.
    pub(crate) fn check_known(
        &self,
        scope: &BTreeSet<SessionId>,
        changed: &[Session],
    ) -> Result<(), StoreFault> {
        let known = |s: &Session| scope.contains(&s.id) && self.rows.contains_key(&s.id);
        ensure(changed.iter().all(known), "a session outside the scope is written")
    }

    pub(crate) fn check_tips(&self, tips: &[Tip]) -> Result<(), StoreFault> {
        ensure_unique(tips.iter().map(|tip| tip.session_id), "a tip is written twice")?;
        let known = |tip: &Tip| self.rows.contains_key(&tip.session_id);
        ensure(tips.iter().all(known), "the tip of an unknown session is written")
    }

    pub(crate) fn put(&mut self, session: Session) {
        if let Some(before) = self.rows.get(&session.id).cloned() {
            self.unindex(&before);
        }
        self.index(&session);
        self.rows.insert(session.id, session);
    }

    pub(crate) fn put_tip(&mut self, tip: &Tip) {
        if let Some(session) = self.rows.get_mut(&tip.session_id) {
            session.last_seq = tip.last_seq;
            session.last_msg_id = Some(tip.last_msg_id);
            session.version = tip.version;
        }
    }

    fn index(&mut self, session: &Session) {
        let user = &session.user.user_id;
        self.by_user.entry(user.clone()).or_default().insert(session.id);
        if session.is_open() {
            self.open.insert(user.clone(), session.id);
        }
        if session.status == Status::Waiting {
            self.waiting.insert(line_key(session));
        }
        if let Some(admin) = owner(session) {
            self.owned.entry(admin.clone()).or_default().insert(session.id);
        }
    }

    fn unindex(&mut self, session: &Session) {
        let user = &session.user.user_id;
        if let Some(ids) = self.by_user.get_mut(user) {
            ids.remove(&session.id);
        }
        if self.open.get(user) == Some(&session.id) {
            self.open.remove(user);
        }
        self.waiting.remove(&line_key(session));
        if let Some(admin) = owner(session)
            && let Some(ids) = self.owned.get_mut(admin)
        {
            ids.remove(&session.id);
            if ids.is_empty() {
                self.owned.remove(admin);
            }
        }
    }
}

const fn line_key(session: &Session) -> (Reverse<i64>, SessionId) {
    (Reverse(session.priority), session.id)
}

fn owner(session: &Session) -> Option<&AdminId> {
    session.admin_id.as_ref().filter(|_| session.status == Status::Active)
}

fn check_row(session: &Session) -> Result<(), StoreFault> {
    match session.status {
        Status::Waiting => ensure(session.admin_id.is_none(), "a waiting session has an owner"),
        Status::Active => ensure(session.admin_id.is_some(), "an active session has no owner"),
        Status::Ended => Ok(()),
    }
}
