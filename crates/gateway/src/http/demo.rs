//! Tokens for the demo pages. Anybody who reaches this call can be an agent, so it answers only on
//! the very machine it runs on.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use kefu_core::person::clean_name;
use kefu_core::{ErrorCode, Role};
use kefu_protocol::http::{DemoTokenAnswer, DemoTokenRequest};

use crate::Gateway;
use crate::auth::Claims;
use crate::http::error::HttpError;
use crate::http::origin::{requested_host, same_origin};

const TTL: Duration = Duration::from_secs(24 * 60 * 60);
const BODY: &str =
    r#"body must be {"role": "user", "agent" or "supervisor", "name"?: 1 to 128 characters}"#;

/// `POST /demo/token`.
pub(crate) async fn token(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<DemoTokenAnswer>, HttpError> {
    if !gateway.config.demo {
        return Err(HttpError::not_found());
    }
    if !is_local(&headers) {
        return Err(HttpError::forbidden("demo tokens are for this machine's own pages"));
    }
    let body = body.map_err(|_| HttpError::new(ErrorCode::PayloadTooLarge, "body is too large"))?;
    let request: DemoTokenRequest =
        serde_json::from_slice(&body).map_err(|_| HttpError::bad_request(BODY))?;
    let claims = Claims {
        sub: fresh_sub(request.role),
        role: request.role,
        name: checked_name(request.name)?,
        balance: None,
        expires_at: gateway.desk.clock().now().after(TTL),
    };
    let token =
        gateway.auth.mint(&claims).map_err(|error| HttpError::internal(error.to_string()))?;
    Ok(Json(DemoTokenAnswer { token, sub: claims.sub }))
}

/// A loopback name in `Host` keeps out other sites that point a name of theirs here, a forwarding
/// header those who come through a proxy on this machine, the origin every other page.
fn is_local(headers: &HeaderMap) -> bool {
    let loopback = requested_host(headers).is_some_and(|host| is_loopback(&host));
    let forwarded = headers.keys().any(|name| is_forwarding(name.as_str()));
    loopback && !forwarded && same_origin(headers)
}

fn is_loopback(host: &str) -> bool {
    let v6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    host == "localhost"
        || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
        || v6.and_then(|text| text.parse().ok()).is_some_and(|ip: Ipv6Addr| ip.is_loopback())
}

fn is_forwarding(header: &str) -> bool {
    matches!(header, "forwarded" | "via" | "x-real-ip") || header.starts_with("x-forwarded-")
}

/// An empty name is no name; any other must fit (A4).
fn checked_name(name: Option<String>) -> Result<Option<String>, HttpError> {
    let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return Ok(None) };
    let refusal = HttpError::bad_request("name must be at most 128 characters, no control ones");
    clean_name(Some(name)).map(Some).ok_or(refusal)
}

fn fresh_sub(role: Role) -> String {
    let kind = match role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::Supervisor => "supervisor",
    };
    format!("demo-{kind}-{:016x}", rand::random::<u64>())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn local(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_local(&pairs.collect())
    }

    #[test]
    fn loopback_hosts_are_local() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:8080", "127.8.8.8", "[::1]:8080"] {
            assert!(local(&[("host", host)]), "{host}");
        }
        assert!(local(&[("host", "localhost:1"), ("origin", "http://localhost:1")]));
    }

    #[test]
    fn everything_else_is_not() {
        for host in
            ["chat.test", "localhost.evil.test", "127.0.0.1.evil.test", "192.0.2.1", "[::2]"]
        {
            assert!(!local(&[("host", host)]), "{host}");
        }
        assert!(!local(&[]));
        for header in ["forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-proto"] {
            assert!(!local(&[("host", "localhost"), (header, "")]), "{header}");
        }
        for origin in ["http://evil.test", "http://localhost:2", "null"] {
            assert!(!local(&[("host", "localhost:1"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(checked_name(Some(" ".into())).unwrap(), None);
        assert_eq!(checked_name(Some("Mei".into())).unwrap().as_deref(), Some("Mei"));
        assert!(checked_name(Some("x".repeat(129))).is_err());
    }

    #[test]
    fn every_sub_is_fresh_and_an_id() {
        assert_ne!(fresh_sub(Role::Agent), fresh_sub(Role::Agent));
        assert!(kefu_core::AdminId::new(fresh_sub(Role::Supervisor)).is_ok());
    }
}
