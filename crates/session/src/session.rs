//! The session aggregate and its transitions.

use kefu_core::{
    Actor, AdminId, Balance, ErrorCode, MsgId, Seq, SessionId, Timestamp, UserId, UserInfo,
};

/// Where a session stands (`cg_chat_session.status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// 0: in the line, nobody's.
    Waiting,
    /// 1: with an agent.
    Active,
    /// 2: over, for ever (S2).
    Ended,
}

impl Status {
    /// The number stored in the table.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Waiting => 0,
            Self::Active => 1,
            Self::Ended => 2,
        }
    }

    /// The status of a stored number.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Waiting),
            1 => Some(Self::Active),
            2 => Some(Self::Ended),
            _ => None,
        }
    }
}

/// A user as the token described them when they began to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserProfile {
    /// The user.
    pub user_id: UserId,
    /// Display name; the id when the token had none.
    pub name: String,
    /// An http(s) URL.
    pub avatar: Option<String>,
    /// Whether the token marked the user as VIP.
    pub vip: Option<bool>,
}

/// A user's judgement of a session (S3, CC-21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rating {
    /// 1 … 5.
    pub score: u8,
    /// At most 500 scalar values; may be empty.
    pub comment: String,
    /// When it was given.
    pub time: Timestamp,
}

/// Why the rules refuse an act. The same everywhere; translated to an [`ErrorCode`] once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It does not exist, or the caller may not see it (A3): the two are not told apart.
    #[error("not found")]
    NotFound,
    /// The role may never do this.
    #[error("not allowed for this role")]
    Forbidden,
    /// The session is over (S2).
    #[error("session has ended")]
    SessionClosed,
    /// The state no longer allows it, or a key was used for something else.
    #[error("state has changed or key was used for something else")]
    Conflict,
    /// The agent is unknown, offline or full.
    #[error("agent is offline, full or unknown")]
    AgentUnavailable,
    /// The request makes no sense.
    #[error("bad request: {0}")]
    BadRequest(&'static str),
}

impl Refusal {
    /// The code a client sees.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NotFound => ErrorCode::NotFound,
            Self::Forbidden => ErrorCode::Forbidden,
            Self::SessionClosed => ErrorCode::SessionClosed,
            Self::Conflict => ErrorCode::Conflict,
            Self::AgentUnavailable => ErrorCode::AgentUnavailable,
            Self::BadRequest(_) => ErrorCode::BadRequest,
        }
    }
}

/// One conversation of one user (`cg_chat_session`).
///
/// Invariants, also CHECKs of the table: waiting has no owner; active has one; ended may have either.
/// Every transition raises `version` by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session.
    pub id: SessionId,
    /// Its user.
    pub user: UserProfile,
    /// Where it stands.
    pub status: Status,
    /// The owner; after the end the agent recorded then.
    pub admin_id: Option<AdminId>,
    /// Where the user came from, as the client said.
    pub source: String,
    /// Frozen when the session began to wait, refreshed by a later `chat.connect` while waiting.
    pub balance: Option<Balance>,
    /// Place in the line: balance with ageing, larger first (Q1).
    pub priority: i64,
    /// Position of the last message.
    pub last_seq: Seq,
    /// Id of the last message: the floor of the next (T1).
    pub last_msg_id: Option<MsgId>,
    /// Grows by one with every change.
    pub version: i64,
    /// When the user opened it.
    pub started_at: Timestamp,
    /// Since when it waits, kept through a requeue (Z7).
    pub queued_at: Timestamp,
    /// When the present owner got it.
    pub assigned_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Who ended it.
    pub ended_by: Option<Actor>,
    /// The user's judgement.
    pub rating: Option<Rating>,
    /// When the user was last told that nobody is online (Q2); forgotten by a requeue.
    pub noticed_at: Option<Timestamp>,
}

impl Session {
    /// The session in the hands of `owner`: from the line, or from a colleague.
    ///
    /// # Errors
    /// [`Refusal::SessionClosed`] after the end.
    pub fn assigned(&self, owner: &AdminId, now: Timestamp) -> Result<Self, Refusal> {
        self.open()?;
        Ok(Self {
            status: Status::Active,
            admin_id: Some(owner.clone()),
            assigned_at: Some(now),
            version: self.version + 1,
            ..self.clone()
        })
    }

    /// The session back in the line, with its original waiting time and balance (Z7).
    ///
    /// # Errors
    /// [`Refusal::SessionClosed`] after the end, [`Refusal::Conflict`] when it waits already.
    pub fn requeued(&self) -> Result<Self, Refusal> {
        match self.status {
            Status::Waiting => Err(Refusal::Conflict),
            Status::Ended => Err(Refusal::SessionClosed),
            Status::Active => Ok(Self {
                status: Status::Waiting,
                admin_id: None,
                assigned_at: None,
                noticed_at: None,
                version: self.version + 1,
                ..self.clone()
            }),
        }
    }

    /// The session after its end. The owner, if any, stays recorded.
    ///
    /// # Errors
    /// [`Refusal::SessionClosed`] when it ended before (S4 makes that a success without effect).
    pub fn ended(&self, by: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        self.open()?;
        Ok(Self {
            status: Status::Ended,
            ended_at: Some(now),
            ended_by: Some(by.clone()),
            version: self.version + 1,
            ..self.clone()
        })
    }

    /// The session after a message was appended: the next position (T1).
    #[must_use]
    pub fn appended(&self, message: MsgId) -> Self {
        Self {
            last_seq: self.last_seq.next(),
            last_msg_id: Some(message),
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.status, Status::Ended)
    }

    /// Whether `admin` owns it now.
    #[must_use]
    pub fn is_owned_by(&self, admin: &AdminId) -> bool {
        self.status == Status::Active && self.admin_id.as_ref() == Some(admin)
    }

    /// What agents see of its user.
    #[must_use]
    pub fn user_info(&self) -> UserInfo {
        UserInfo {
            user_id: self.user.user_id.clone(),
            name: self.user.name.clone(),
            avatar: self.user.avatar.clone(),
            balance: self.balance,
            vip: self.user.vip,
        }
    }

    const fn open(&self) -> Result<(), Refusal> {
        if self.is_open() { Ok(()) } else { Err(Refusal::SessionClosed) }
    }
}
