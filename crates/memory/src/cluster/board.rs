//! Copies in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kefu_assignment::{BoardPage, LoadBoard, LoadCopy, SessionCopy};
use kefu_core::{AdminId, SessionId, StoreFault, UserId};
use kefu_session::Status;

/// A board that holds the newest copy of each row it was shown, ended sessions among them.
#[derive(Default)]
pub struct MemoryBoard {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, SessionCopy>,
    active: HashMap<UserId, SessionId>,
    line: BTreeSet<(Reverse<i64>, SessionId)>,
    loads: HashMap<AdminId, LoadCopy>,
}

impl MemoryBoard {
    /// An empty board.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses every copy at once, as a Redis that was emptied (A1).
    pub fn lose_all(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn apply_session(&mut self, copy: &SessionCopy) {
        let known = self.sessions.get(&copy.session_id);
        if known.is_some_and(|known| known.version >= copy.version) {
            return;
        }
        if let Some(known) = known {
            self.line.remove(&(Reverse(known.priority), known.session_id));
        }
        if copy.status == Status::Waiting {
            self.line.insert((Reverse(copy.priority), copy.session_id));
        }
        let current = self.active.get(&copy.user_id).copied();
        match (copy.status, current) {
            (Status::Ended, Some(current)) if current == copy.session_id => {
                self.active.remove(&copy.user_id);
            }
            (Status::Ended, _) => {}
            // A later session of the same user is the open one, however late this copy comes.
            (_, Some(current)) if current > copy.session_id => {}
            (_, _) => {
                self.active.insert(copy.user_id.clone(), copy.session_id);
            }
        }
        self.sessions.insert(copy.session_id, copy.clone());
    }

    fn apply_load(&mut self, copy: &LoadCopy) {
        let known = self.loads.get(&copy.admin_id);
        if known.is_none_or(|known| known.version < copy.version) {
            self.loads.insert(copy.admin_id.clone(), copy.clone());
        }
    }
}

#[async_trait]
impl LoadBoard for MemoryBoard {
    async fn apply(&self, sessions: &[SessionCopy], agents: &[LoadCopy]) -> Result<(), StoreFault> {
        let mut state = self.state();
        sessions.iter().for_each(|copy| state.apply_session(copy));
        agents.iter().for_each(|copy| state.apply_load(copy));
        Ok(())
    }

    async fn find_owner(&self, session: SessionId) -> Result<Option<AdminId>, StoreFault> {
        Ok(self.state().sessions.get(&session).and_then(|copy| copy.admin_id.clone()))
    }

    async fn find_active_session(&self, user: &UserId) -> Result<Option<SessionId>, StoreFault> {
        Ok(self.state().active.get(user).copied())
    }

    async fn find_load(&self, admin: &AdminId) -> Result<Option<u32>, StoreFault> {
        Ok(self.state().loads.get(admin).map(|copy| copy.load))
    }

    async fn line(&self, limit: u32) -> Result<Vec<SessionId>, StoreFault> {
        Ok(self.state().line.iter().take(limit as usize).map(|(_, id)| *id).collect())
    }

    async fn list_open(&self, _: Option<u64>) -> Result<BoardPage, StoreFault> {
        let state = self.state();
        let open = state.sessions.values().filter(|copy| copy.status != Status::Ended);
        Ok(BoardPage { sessions: open.map(|copy| copy.session_id).collect(), next: None })
    }
}

impl fmt::Debug for MemoryBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBoard").finish_non_exhaustive()
    }
}
