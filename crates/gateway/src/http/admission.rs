//! What a call must bring before it is worked on: room in the process (L1) and a token (A3).

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use kefu_core::Caller;
use tokio::sync::OwnedSemaphorePermit;

use crate::Gateway;
use crate::auth::AuthError;
use crate::http::error::HttpError;

/// A share of the process's in-flight budget, held for as long as this value (L1).
pub(crate) struct Admitted {
    _permit: OwnedSemaphorePermit,
}

impl FromRequestParts<Arc<Gateway>> for Admitted {
    type Rejection = HttpError;

    async fn from_request_parts(
        _: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Self::Rejection> {
        let permit = Arc::clone(&gateway.budget).try_acquire_owned();
        let permit = permit.map_err(|_| HttpError::overloaded())?;
        Ok(Self { _permit: permit })
    }
}

/// Whom the bearer token names.
pub(crate) struct Authenticated(pub(crate) Caller);

impl FromRequestParts<Arc<Gateway>> for Authenticated {
    type Rejection = HttpError;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Self::Rejection> {
        let header = parts.headers.get(AUTHORIZATION).ok_or(AuthError::Missing)?;
        let text = header.to_str().map_err(|_| AuthError::Invalid)?;
        let token = bearer(text).ok_or(AuthError::Missing)?;
        Ok(Self(gateway.auth.verify(token)?.caller))
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn only_the_bearer_scheme_carries_a_token() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("abc"), None);
    }
}
