//! Tokens: the only source of identity (A3).

mod claims;
mod keys;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use kefu_core::{Caller, Clock, ErrorCode, Timestamp, UserId};

pub use claims::Claims;
use claims::{RawClaims, SignedClaims};
pub use keys::KeyError;
use keys::Keys;

/// How far ahead of this clock `nbf` may lie: what two machines with set clocks may differ by (T3).
/// `exp` has no leeway; a client that finds its token expired fetches another one.
const NOT_BEFORE_LEEWAY: Duration = Duration::from_secs(5);

/// Verifies tokens, and mints them where it holds the secret. Clones share the keys.
#[derive(Clone)]
pub struct Authenticator {
    keys: Arc<Keys>,
    clock: Arc<dyn Clock>,
}

/// What a token proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Who is speaking.
    pub caller: Caller,
    /// From this moment on the token proves nothing.
    pub expires_at: Timestamp,
}

/// Why a token proves nothing. Which check failed is not told, except expiry, which a client can mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no token.
    #[error("a token is needed")]
    Missing,
    /// Signature, algorithm, shape or a claim is wrong.
    #[error("the token is not valid")]
    Invalid,
    /// It was valid once.
    #[error("the token has expired")]
    Expired,
}

impl AuthError {
    /// The code at connect and in HTTP. (`token_expired` is for a connection that is open already.)
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Missing | Self::Invalid | Self::Expired => ErrorCode::Unauthenticated,
        }
    }
}

/// Why no token was minted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MintError {
    /// Tokens come from elsewhere: only the public keys are known here.
    #[error("tokens can be minted only with auth.secret")]
    NoSecret,
    /// The id breaks the rule of `userId` and `adminId`.
    #[error("sub must be 1 to 64 characters of A-Z a-z 0-9 _ . -")]
    InvalidSubject,
    /// The token could not be signed.
    #[error("the token could not be signed")]
    Signing,
}

impl Authenticator {
    /// Verifies and mints HS256 tokens with a shared secret (`auth.secret`).
    ///
    /// # Errors
    /// [`KeyError::WeakSecret`] below 16 bytes.
    pub fn hs256(secret: &[u8], clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        Ok(Self { keys: Arc::new(Keys::from_secret(secret)?), clock })
    }

    /// Verifies RS256, ES256 and EdDSA tokens with the public keys of a JWKS document
    /// (`auth.jwks_file`).
    ///
    /// Each key verifies one algorithm only. A token names its key by `kid`; it may leave that out
    /// where there is one key. Keys for other purposes or algorithms are passed over.
    ///
    /// # Errors
    /// [`KeyError`] for a document that gives no usable or no unambiguous key.
    pub fn jwks(json: &str, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        Ok(Self { keys: Arc::new(Keys::from_jwks(json)?), clock })
    }

    /// Who the bearer of `token` is.
    ///
    /// `sub`, `role` and `exp` are required, `nbf` is honoured; `name`, `avatar`, `balance` and `vip`
    /// are left out when they break their rule (T4). Without a name the id is the name. `aud` and
    /// `iss` are not looked at: the key says who issued the token.
    ///
    /// # Errors
    /// [`AuthError`]; [`AuthError::Expired`] only for a token that is valid otherwise.
    pub fn verify(&self, token: &str) -> Result<Verified, AuthError> {
        if token.is_empty() {
            return Err(AuthError::Missing);
        }
        let claims: RawClaims = self.keys.open(token).ok_or(AuthError::Invalid)?;
        let not_before = claims.not_before().ok_or(AuthError::Invalid)?;
        let expires_at = claims.expires_at().ok_or(AuthError::Invalid)?;
        let caller = claims.into_caller().ok_or(AuthError::Invalid)?;
        let now = self.clock.now();
        if not_before > now.after(NOT_BEFORE_LEEWAY) {
            return Err(AuthError::Invalid);
        }
        if now >= expires_at {
            return Err(AuthError::Expired);
        }
        Ok(Verified { caller, expires_at })
    }

    /// A token that says `claims`, for the demo and for `gateway token`.
    ///
    /// # Errors
    /// [`MintError::NoSecret`] unless made by [`Self::hs256`]; [`MintError::InvalidSubject`].
    pub fn mint(&self, claims: &Claims) -> Result<String, MintError> {
        let key = self.keys.signing().ok_or(MintError::NoSecret)?;
        // Agents' ids follow the same rule.
        UserId::new(&claims.sub).map_err(|_| MintError::InvalidSubject)?;
        sign(&SignedClaims::from(claims), key).ok_or(MintError::Signing)
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

fn sign(claims: &SignedClaims, key: &EncodingKey) -> Option<String> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, key).ok()
}

#[cfg(test)]
mod tests;
