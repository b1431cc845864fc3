//! Worlds whose waiting line is in another order (2.8, Q1), or is left too early (2.7, Q3).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kefu_core::limit::DRAIN_HEADS;
use kefu_core::{SessionId, StoreFault};
use kefu_desk::Stores;
use kefu_presence::AgentDirectory;
use kefu_queue::{Line, Place, WaitingLine};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFlaw {
    /// First come first served, whatever the balance.
    ByArrival,
    /// Of equals the newest first.
    NewestTieFirst,
    /// The smallest balance first.
    Ascending,
    /// By the balance alone: waiting counts for nothing.
    AgeingIgnored,
    /// Who is handed to a pass is out of the line, before the pass has committed anything.
    LeftBeforeCommit,
}

/// `stores` with that flaw.
#[must_use]
pub fn line(stores: Stores, flaw: LineFlaw) -> Stores {
    let broken = Broken {
        line: Arc::clone(&stores.line),
        agents: Arc::clone(&stores.agents),
        flaw,
        left: Mutex::default(),
    };
    Stores { line: Arc::new(broken), ..stores }
}

struct Broken {
    line: Arc<dyn WaitingLine>,
    agents: Arc<dyn AgentDirectory>,
    flaw: LineFlaw,
    left: Mutex<BTreeSet<SessionId>>,
}

impl Broken {
    async fn whole(&self) -> Result<Line, StoreFault> {
        let mut line = self.line.front(u32::MAX >> 1).await?;
        let sessions = &mut line.sessions;
        match self.flaw {
            LineFlaw::ByArrival => sessions.sort_by_key(|session| session.id),
            LineFlaw::NewestTieFirst => {
                sessions.sort_by_key(|session| Reverse((session.priority, session.id)));
            }
            LineFlaw::Ascending => sessions.sort_by_key(|session| (session.priority, session.id)),
            LineFlaw::AgeingIgnored => sessions.sort_by_key(|session| {
                (Reverse(session.balance.unwrap_or_default().clamped()), session.id)
            }),
            LineFlaw::LeftBeforeCommit => {
                let left = self.left.lock().expect("whole");
                sessions.retain(|session| !left.contains(&session.id));
            }
        }
        Ok(line)
    }
}

#[async_trait]
impl WaitingLine for Broken {
    async fn front(&self, limit: u32) -> Result<Line, StoreFault> {
        let mut line = self.whole().await?;
        line.sessions.truncate(limit as usize);
        let is_pass = self.flaw == LineFlaw::LeftBeforeCommit && limit == DRAIN_HEADS;
        if is_pass && !self.agents.list_eligible(1).await?.is_empty() {
            let taken = line.sessions.iter().map(|session| session.id);
            self.left.lock().expect("whole").extend(taken);
        }
        Ok(line)
    }

    async fn place(&self, session: SessionId) -> Result<Option<Place>, StoreFault> {
        let line = self.whole().await?;
        let index = line.sessions.iter().position(|waiting| waiting.id == session);
        let position = index.and_then(|index| u32::try_from(index + 1).ok());
        Ok(position.map(|position| Place { position, total: line.total }))
    }
}
