//! What happens around every request: a trace id, the rendering of refusals, a count.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use crate::Gateway;
use crate::http::error::{self, HttpError};

/// Gives the request's refusal, if any, its body, and counts the answer.
pub(crate) async fn traced(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let trace = gateway.next_trace();
    let route = route_of(&request);
    let span = tracing::info_span!("request", trace_id = %trace, route);
    let mut response = next.run(request).instrument(span).await;
    if let Some(refusal) = response.extensions_mut().remove::<HttpError>() {
        let rendered = error::render(refusal, &trace);
        response = with_headers_of(&response, rendered);
    }
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    count(route, &response);
    response
}

/// Keeps what layers below said about the answer, such as CORS.
fn with_headers_of(original: &Response, mut rendered: Response) -> Response {
    for (name, value) in original.headers() {
        if *name != header::CONTENT_LENGTH {
            rendered.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
    rendered
}

/// The route's own text, never the path: labels must stay few.
fn route_of(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or_else(|| "other".to_owned(), |route| route.as_str().to_owned())
}

fn count(route: String, response: &Response) {
    let status = response.status().as_str().to_owned();
    metrics::counter!("kefu_http_requests_total", "route" => route, "status" => status)
        .increment(1);
}
