//! What watches over the process asks: `/healthz`, `/readyz`, `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Gateway, Readiness};

/// A store that does not answer within this time does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The body of `/readyz`.
#[derive(Serialize)]
struct Answer {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

/// Alive as long as it answers.
pub(crate) async fn health() -> &'static str {
    "ok"
}

/// Red while the store is missing, and once shutdown has begun (L3).
pub(crate) async fn readiness(State(gateway): State<Arc<Gateway>>) -> Response {
    answer_readyz(gateway.ready.as_ref(), &gateway.closing).await
}

/// The answer to `/readyz` of any process: red while a part is missing or silent, and once `closing`.
pub async fn answer_readyz(ready: &dyn Readiness, closing: &CancellationToken) -> Response {
    let missing = match closing.is_cancelled() {
        true => Some("shutting down"),
        false => timeout(PATIENCE, ready.check()).await.unwrap_or(Err("store")).err(),
    };
    let status = if missing.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Answer { ready: missing.is_none(), missing })).into_response()
}

/// Prometheus text.
pub(crate) async fn metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, (gateway.metrics)()).into_response()
}
