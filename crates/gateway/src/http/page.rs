//! The pages and modules of `kefu-web`.

use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use kefu_web::Asset;

use crate::http::error::{HttpError, method_not_allowed};

/// Own scripts and styles only, nothing inline, no frame around it; avatars come from anywhere.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' blob: https: http:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Every path that nothing else answers.
pub(crate) async fn show(request: Request) -> Result<Response, HttpError> {
    let asset = kefu_web::asset(request.uri().path()).ok_or_else(HttpError::not_found)?;
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(method_not_allowed().await);
    }
    let packed = takes_gzip(request.headers());
    let (body, tag) =
        if packed { (asset.gzip, &asset.gzip_etag) } else { (asset.body, &asset.etag) };
    let etag =
        HeaderValue::from_str(tag).map_err(|error| HttpError::internal(error.to_string()))?;
    let mut response = if is_known(request.headers(), tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = ([(CONTENT_TYPE, asset.content_type)], body).into_response();
        if packed {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    };
    describe(response.headers_mut(), &asset, etag);
    Ok(response)
}

/// Whether the client names `gzip` and does not refuse it with a quality of zero.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|choice| {
        let mut parts = choice.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        named && !refused
    })
}

fn describe(headers: &mut HeaderMap, asset: &Asset, etag: HeaderValue) {
    headers.insert(ETAG, etag);
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    // Asked for anew each time, sent only when changed: an upgrade of the binary is seen at once.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if asset.content_type.starts_with("text/html") {
        headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    } else {
        // Module scripts are fetched with CORS by the sites that embed the widget.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
}

/// Compared weakly, as `If-None-Match` asks: a proxy that compresses marks the tag as weak.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    tags.flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(tags: &str) -> bool {
        is_known(&HeaderMap::from_iter([(IF_NONE_MATCH, tags.parse().unwrap())]), "\"a\"")
    }

    #[test]
    fn gzip_is_sent_to_whom_it_is_welcome() {
        let takes = |line: &str| {
            takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, line.parse().unwrap())]))
        };
        assert!(takes("gzip, deflate, br") && takes("br;q=1.0, GZIP;q=0.5"));
        assert!(!takes("gzip;q=0, br") && !takes("identity") && !takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn tags_are_compared_weakly() {
        for tags in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "*"] {
            assert!(known(tags), "{tags}");
        }
        for tags in ["\"b\"", "a", "\"ab\"", ""] {
            assert!(!known(tags), "{tags}");
        }
    }
}
