//! `gateway token`: a token for a person, signed with this installation's secret.

use std::time::Duration;

use anyhow::{Result, ensure};
use kefu_core::person::clean_name;
use kefu_core::{Balance, Role, Timestamp};
use kefu_gateway::auth::{Authenticator, Claims};

/// Who the token is for.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// `userId`, or `adminId` of agents and supervisors.
    pub sub: String,
    /// What they may do.
    pub role: Role,
    /// Display name.
    pub name: Option<String>,
    /// A user's balance in minor units.
    pub balance: Option<i64>,
    /// How long it is good for.
    pub ttl: Duration,
}

/// Signs the token. What a reader of the token would leave out (T4) is refused here, where somebody
/// can still correct it.
pub(crate) fn mint(auth: &Authenticator, request: &TokenRequest, now: Timestamp) -> Result<String> {
    let TokenRequest { sub, role, name, balance, ttl } = request.clone();
    ensure!(
        name.is_none() || clean_name(name.clone()).is_some(),
        "--name must be 1 to 128 characters without control characters"
    );
    let balance = balance.map(Balance);
    ensure!(
        balance.is_none_or(|balance| balance == balance.clamped()),
        "--balance must be within ± 2^53"
    );
    let expires_at = now.after(ttl);
    Ok(auth.mint(&Claims { sub, role, name, balance, expires_at })?)
}
