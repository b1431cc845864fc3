//! What watches over the process asks: `/healthz`, `/readyz`, `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::Gateway;

/// A store that does not answer within this time does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The body of `/readyz`.
#[derive(Serialize)]
struct Readiness {
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
    let missing = missing(&gateway).await;
    let status = if missing.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready: missing.is_none(), missing })).into_response()
}

/// Prometheus text.
pub(crate) async fn metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, (gateway.metrics)()).into_response()
}

async fn missing(gateway: &Gateway) -> Option<&'static str> {
    if gateway.closing.is_cancelled() {
        return Some("shutting down");
    }
    let answer = tokio::time::timeout(PATIENCE, gateway.ready.check()).await;
    answer.unwrap_or(Err("store")).err()
}
