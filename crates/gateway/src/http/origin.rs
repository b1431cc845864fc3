//! Whose pages may talk to this server.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;

use crate::GatewayConfig;

/// Whether a request may be answered for the page that sent it.
///
/// Without `Origin` it comes from no other site's page: another program, or a plain navigation. The
/// server's own pages and those of `server.allowed_origins` are let in; `null` only with `*`.
pub(crate) fn origin_allowed(headers: &HeaderMap, config: &GatewayConfig) -> bool {
    is_allowed(headers, &config.allowed_origins)
}

/// Whether the request comes from this server's own page or from no page at all.
pub(crate) fn same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    origin.to_str().is_ok_and(|origin| is_own(origin, headers))
}

/// The host that the client asked for, without port; IPv6 in brackets.
pub(crate) fn requested_host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

fn is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    let names =
        |entry: &String| entry == "*" || entry.trim_end_matches('/').eq_ignore_ascii_case(origin);
    is_own(origin, headers) || allowed.iter().any(names)
}

/// TLS may end at a proxy, so both schemes are ours.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let bare = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    matches!((bare, host), (Some(bare), Some(host)) if bare.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        headers.extend(origin.map(|origin| (ORIGIN, origin.parse::<HeaderValue>().unwrap())));
        headers
    }

    fn allowed(origin: Option<&str>, list: &[&str]) -> bool {
        let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
        is_allowed(&headers("chat.test:8080", origin), &list)
    }

    #[test]
    fn own_pages_and_programs_are_let_in() {
        for origin in [None, Some("http://chat.test:8080"), Some("https://CHAT.test:8080")] {
            assert!(allowed(origin, &[]), "{origin:?}");
        }
    }

    #[test]
    fn other_sites_are_let_in_only_by_name() {
        for origin in [
            "http://evil.test",
            "http://chat.test",
            "http://chat.test:8081",
            "http://chat.test:8080.evil.test",
            "ftp://chat.test:8080",
            "null",
            "",
        ] {
            assert!(!allowed(Some(origin), &["https://shop.test"]), "{origin}");
            assert!(allowed(Some(origin), &["*"]), "{origin}");
        }
        assert!(allowed(Some("https://shop.test"), &["https://shop.test"]));
        assert!(allowed(Some("https://shop.test"), &["https://other.test", "https://Shop.test/"]));
        assert!(!allowed(Some("http://shop.test"), &["https://shop.test"]));
    }

    #[test]
    fn the_requested_host_has_no_port() {
        let host = |text| requested_host(&headers(text, None));
        assert_eq!(host("LocalHost:8080").as_deref(), Some("localhost"));
        assert_eq!(host("[::1]:8080").as_deref(), Some("[::1]"));
        assert_eq!(host("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(requested_host(&HeaderMap::new()), None);
    }
}
