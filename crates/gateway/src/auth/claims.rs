//! What a token says, and what of it is believed (T4).

use kefu_core::person::{clean_avatar, clean_name};
use kefu_core::{AdminId, AgentInfo, Balance, Caller, Role, Timestamp, UserId, UserInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a minted token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `userId` of a user, `adminId` of agents and supervisors.
    pub sub: String,
    /// What they may do.
    pub role: Role,
    /// Display name.
    pub name: Option<String>,
    /// A user's balance.
    pub balance: Option<Balance>,
    /// When the token ends; cut to the second below.
    pub expires_at: Timestamp,
}

/// The claims as they are signed.
#[derive(Serialize)]
pub(super) struct SignedClaims<'a> {
    sub: &'a str,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<Balance>,
    exp: i64,
}

impl<'a> From<&'a Claims> for SignedClaims<'a> {
    fn from(claims: &'a Claims) -> Self {
        Self {
            sub: &claims.sub,
            role: claims.role,
            name: claims.name.as_deref(),
            balance: claims.balance,
            exp: claims.expires_at.0.div_euclid(1000),
        }
    }
}

/// The claims of a token whose signature holds. What may be left out is read leniently.
#[derive(Deserialize)]
pub(super) struct RawClaims {
    sub: String,
    role: Role,
    exp: Value,
    nbf: Option<Value>,
    name: Option<Value>,
    avatar: Option<Value>,
    balance: Option<Value>,
    vip: Option<Value>,
}

impl RawClaims {
    /// `None` when it is no number.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        numeric_date(&self.exp)
    }

    /// Without the claim the beginning of time; `None` when it is no number.
    pub(super) fn not_before(&self) -> Option<Timestamp> {
        self.nbf.as_ref().map_or(Some(Timestamp(i64::MIN)), numeric_date)
    }

    /// `None` when `sub` is no id.
    pub(super) fn into_caller(self) -> Option<Caller> {
        let name = clean_name(text(self.name)).unwrap_or_else(|| self.sub.clone());
        let avatar = clean_avatar(text(self.avatar));
        let agent = |admin_id, name, avatar| AgentInfo { admin_id, name, avatar };
        Some(match self.role {
            Role::User => Caller::User(UserInfo {
                user_id: UserId::new(&self.sub).ok()?,
                name,
                avatar,
                balance: self.balance.as_ref().and_then(balance),
                vip: self.vip.as_ref().and_then(Value::as_bool),
            }),
            Role::Agent => Caller::Agent(agent(AdminId::new(&self.sub).ok()?, name, avatar)),
            Role::Supervisor => {
                Caller::Supervisor(agent(AdminId::new(&self.sub).ok()?, name, avatar))
            }
        })
    }
}

fn text(claim: Option<Value>) -> Option<String> {
    match claim {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Whole minor units, kept inside ± 2^53 (Q1).
fn balance(claim: &Value) -> Option<Balance> {
    let beyond = claim.is_u64().then_some(i64::MAX);
    claim.as_i64().or(beyond).map(|amount| Balance(amount).clamped())
}

/// Seconds since 1970, which RFC 7519 allows to be fractional.
fn numeric_date(claim: &Value) -> Option<Timestamp> {
    if let Some(seconds) = claim.as_i64() {
        return Some(Timestamp(seconds.saturating_mul(1000)));
    }
    // A conversion from float saturates: dates beyond the range are its ends.
    claim.as_f64().map(|seconds| Timestamp((seconds * 1000.0) as i64))
}
