//! Who is speaking: roles, verified callers, and what others may see of a person.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{AdminId, UserId};
use crate::limit::{MAX_AVATAR_CHARS, MAX_SHORT_CHARS};
use crate::text::is_clean;

/// An amount in minor units, as the token's `balance` claim states it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Balance(pub i64);

impl Balance {
    /// The largest magnitude that a Redis score keeps exactly (Q1): 2^53.
    pub const MAX: i64 = 1 << 53;

    /// Keeps the amount inside ± 2^53.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self(self.0.clamp(-Self::MAX, Self::MAX))
    }
}

/// The `role` claim of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A visitor.
    User,
    /// An agent.
    Agent,
    /// A supervisor.
    Supervisor,
}

/// What agents see of a user (`userInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The user.
    pub user_id: UserId,
    /// Display name; the id when the token had none.
    pub name: String,
    /// An http(s) URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
    /// Balance in minor units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// Whether the token marks the user as VIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip: Option<bool>,
}

/// What users and colleagues see of an agent (`agentInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// The agent.
    pub admin_id: AdminId,
    /// Display name; the id when the token had none.
    pub name: String,
    /// An http(s) URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

/// A person whose token was verified. The only source of identity (A3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A visitor with what the token says about them.
    User(UserInfo),
    /// An agent.
    Agent(AgentInfo),
    /// A supervisor: an agent's id space, other rights.
    Supervisor(AgentInfo),
}

impl Caller {
    /// The caller's role.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::User(_) => Role::User,
            Self::Agent(_) => Role::Agent,
            Self::Supervisor(_) => Role::Supervisor,
        }
    }

    /// The address under which this caller's connections are reached.
    #[must_use]
    pub fn person(&self) -> Person {
        match self {
            Self::User(info) => Person::User(info.user_id.clone()),
            Self::Agent(info) | Self::Supervisor(info) => Person::Agent(info.admin_id.clone()),
        }
    }

    /// The agent's id, unless this is a user.
    #[must_use]
    pub const fn admin_id(&self) -> Option<&AdminId> {
        match self {
            Self::User(_) => None,
            Self::Agent(info) | Self::Supervisor(info) => Some(&info.admin_id),
        }
    }

    /// The user's id, if this is one.
    #[must_use]
    pub const fn user_id(&self) -> Option<&UserId> {
        match self {
            Self::User(info) => Some(&info.user_id),
            Self::Agent(_) | Self::Supervisor(_) => None,
        }
    }

    /// Who acted, as decision records and `endedBy` name it.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match self {
            Self::User(info) => Actor::User(info.user_id.clone()),
            Self::Agent(info) => Actor::Agent(info.admin_id.clone()),
            Self::Supervisor(info) => Actor::Supervisor(info.admin_id.clone()),
        }
    }
}

/// Somebody with connections: the address of a push.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Person {
    /// A visitor.
    User(UserId),
    /// An agent or supervisor.
    Agent(AdminId),
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user:{id}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
        }
    }
}

/// Who caused a change. Text form (`user:u1`, `agent:a1`, `supervisor:s1`, `system`) is what is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Actor {
    /// A visitor.
    User(UserId),
    /// An agent.
    Agent(AdminId),
    /// A supervisor.
    Supervisor(AdminId),
    /// kefu itself: the drain, the sweeper.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user:{id}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Supervisor(id) => write!(f, "supervisor:{id}"),
            Self::System => f.write_str("system"),
        }
    }
}

impl std::str::FromStr for Actor {
    type Err = crate::InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("user", id)) => Ok(Self::User(id.parse()?)),
            Some(("agent", id)) => Ok(Self::Agent(id.parse()?)),
            Some(("supervisor", id)) => Ok(Self::Supervisor(id.parse()?)),
            None if text == "system" => Ok(Self::System),
            _ => Err(crate::InvalidId { kind: "actor" }),
        }
    }
}

impl TryFrom<String> for Actor {
    type Error = crate::InvalidId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> Self {
        actor.to_string()
    }
}

/// A display name from a token claim; a bad claim is left out (T4).
#[must_use]
pub fn clean_name(claim: Option<String>) -> Option<String> {
    claim.filter(|name| !name.trim().is_empty() && is_clean(name, MAX_SHORT_CHARS))
}

/// An avatar URL from a token claim: http(s) only, at most 512 scalar values, else left out (T4).
#[must_use]
pub fn clean_avatar(claim: Option<String>) -> Option<String> {
    let http = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    claim.filter(|url| http(url) && is_clean(url, MAX_AVATAR_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_claims_are_left_out() {
        assert_eq!(clean_name(Some("a\u{7}".into())), None);
        assert_eq!(clean_name(Some("x".repeat(129))), None);
        assert_eq!(clean_avatar(Some("javascript:alert(1)".into())), None);
        assert!(clean_avatar(Some("https://a.test/x.png".into())).is_some());
    }

    #[test]
    fn actors_survive_their_text_form() {
        for text in ["user:u1", "agent:a1", "supervisor:s.1", "system"] {
            assert_eq!(text.parse::<Actor>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
        assert!("agent:".parse::<Actor>().is_err());
        assert!("root".parse::<Actor>().is_err());
    }
}
