//! Where a conversation stands, as every model of one has it, and who may move it.

use kefu_core::ErrorCode;

use super::Who;

/// Where a conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nobody's.
    Waiting,
    /// This agent's.
    With(usize),
    /// Over; whose it was last.
    Over(Option<usize>),
}

/// Whose a conversation is, and where it stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Whose it is.
    pub user: usize,
    /// Where it stands.
    pub stage: Stage,
    /// Who handed it to whom, if that is the last that happened to it.
    handed: Option<(Who, usize)>,
}

impl Standing {
    /// A user's new one.
    pub(super) const fn new(user: usize) -> Self {
        Self { user, stage: Stage::Waiting, handed: None }
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    fn owner(&self) -> Option<usize> {
        match self.stage {
            Stage::Waiting => None,
            Stage::With(agent) => Some(agent),
            Stage::Over(agent) => agent,
        }
    }

    /// Whether this is a party's, or a supervisor's, business (A3).
    pub(super) fn concerns(&self, who: Who) -> bool {
        match who {
            Who::User(user) => user == self.user,
            Who::Agent(agent) => self.owner() == Some(agent),
            Who::Boss => true,
        }
    }

    pub(super) fn give(&mut self, agent: usize) {
        self.stage = Stage::With(agent);
        self.handed = None;
    }

    /// An agent, who has room or not, takes it (Z6).
    pub(super) fn claim(&mut self, agent: usize, has_room: bool) -> Result<(), ErrorCode> {
        match self.stage {
            Stage::Over(_) => Err(ErrorCode::SessionClosed),
            Stage::With(_) => Err(ErrorCode::Conflict),
            Stage::Waiting if !has_room => Err(ErrorCode::AgentUnavailable),
            Stage::Waiting => {
                self.give(agent);
                Ok(())
            }
        }
    }

    /// Somebody hands it to an agent who has room or not; says whether it moved (Z5, S4).
    pub(super) fn transfer(
        &mut self,
        who: Who,
        target: usize,
        has_room: bool,
    ) -> Result<bool, ErrorCode> {
        if matches!(who, Who::User(_)) {
            return Err(ErrorCode::Forbidden);
        }
        if self.handed == Some((who, target)) && self.stage == Stage::With(target) {
            return Ok(false);
        }
        if !self.concerns(who) {
            return Err(ErrorCode::NotFound);
        }
        match self.stage {
            Stage::Over(_) => Err(ErrorCode::SessionClosed),
            Stage::Waiting => Err(ErrorCode::Conflict),
            Stage::With(owner) if owner == target => Err(ErrorCode::BadRequest),
            Stage::With(_) if !has_room => Err(ErrorCode::AgentUnavailable),
            Stage::With(_) => {
                self.give(target);
                self.handed = Some((who, target));
                Ok(true)
            }
        }
    }

    /// Somebody ends it (S4).
    pub(super) fn end(&mut self, who: Who) -> Result<(), ErrorCode> {
        if !self.concerns(who) {
            return Err(ErrorCode::NotFound);
        }
        self.stage = Stage::Over(self.owner());
        self.handed = None;
        Ok(())
    }

    /// Its agent, if it is this one, gives it back (Z7).
    pub(super) fn give_back(&mut self, agent: usize) {
        if self.stage == Stage::With(agent) {
            self.stage = Stage::Waiting;
            self.handed = None;
        }
    }
}
