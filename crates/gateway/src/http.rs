//! The HTTP calls, and every route of a gateway.

mod admission;
mod cors;
mod demo;
pub(crate) mod error;
mod history;
mod image;
pub(crate) mod origin;
mod page;
mod probe;
mod trace;
mod upload;

pub use probe::answer_readyz;

use std::sync::Arc;

pub(crate) use upload::AT_ONCE as UPLOADS_AT_ONCE;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::Gateway;
use crate::http::error::HttpError;

/// Bytes of a request body, unless the call says otherwise.
const BODY_BYTES: usize = 4_096;

/// Everything that a listener needs: sockets, the HTTP API, pages, probes.
///
/// To be served with `into_make_service_with_connect_info::<SocketAddr>()`: limits count by address.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/ws", get(crate::ws::upgrade))
        .nest("/api", api(&gateway))
        .route("/uploads/chat/{day}/{name}", get(image::show))
        .route("/demo/token", post(demo::token))
        .route("/healthz", get(probe::health))
        .route("/readyz", get(probe::readiness))
        .route("/metrics", get(probe::metrics))
        .fallback(page::show)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(CatchPanicLayer::custom(|_| HttpError::panicked()))
        .layer(from_fn_with_state(Arc::clone(&gateway), trace::traced))
        .with_state(gateway)
}

/// What pages of other sites may call, if they are allowed.
fn api(gateway: &Arc<Gateway>) -> Router<Arc<Gateway>> {
    Router::new()
        // Counts its bytes itself: the file's, not the form's.
        .route("/v1/uploads", post(upload::create).layer(DefaultBodyLimit::disable()))
        .route("/v1/sessions/{id}/messages", get(history::page))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn(cors::uncached))
        .layer(from_fn_with_state(Arc::clone(gateway), cors::cross_origin))
}
