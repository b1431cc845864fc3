//! Calls from pages of other sites: the allowed ones only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    CACHE_CONTROL, ORIGIN, VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Gateway;
use crate::http::error::HttpError;
use crate::http::origin::origin_allowed;

/// Seconds for which a browser need not ask again.
const PREFLIGHT_TTL: HeaderValue = HeaderValue::from_static("600");

/// Refuses pages that are not allowed, answers preflights, and lets allowed pages read the answer.
/// No cookie is ever looked at, so none is asked for.
pub(crate) async fn cross_origin(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    if !origin_allowed(request.headers(), &gateway.config) {
        return varied(HttpError::forbidden("this origin is not allowed").into_response());
    }
    let Some(origin) = origin else { return varied(next.run(request).await) };
    let response = if is_preflight(&request) { preflight() } else { next.run(request).await };
    let mut response = varied(response);
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response
        .headers_mut()
        .insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    response
}

/// What the API says concerns one person at one moment.
pub(crate) async fn uncached(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST")),
        (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("authorization, content-type")),
        (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_TTL),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn varied(mut response: Response) -> Response {
    response.headers_mut().append(VARY, HeaderValue::from_static("origin"));
    response
}
