//! The WebSocket: upgrade, then one task per connection.

mod answer;
mod backstage;
mod connect;
mod connection;
mod frames;
mod refused;
mod supervise;
mod timers;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, State};
use axum::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::address::client_address;
use crate::http::error::HttpError;
use crate::http::origin::origin_allowed;
use crate::state::Gateway;
use connection::Connection;

/// Read and write buffers of one socket. The library's defaults cost 128 KiB a connection (T6).
const SOCKET_BUFFER: usize = 2_048;
/// Bytes that one pipeline of large answers may pile up before it is flushed.
const MAX_WRITE_BUFFER: usize = 2 * 1_024 * 1_024;
/// The socket reads a frame up to this multiple of the limit, so that the close code 1009 still
/// reaches whoever sent it; beyond it the connection just ends.
const OVERSIZE: usize = 4;

/// `GET /ws`.
pub(crate) async fn upgrade(
    State(gateway): State<Arc<Gateway>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if gateway.closing.is_cancelled() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    // A foreign page must not open a socket with a token it got hold of (B103).
    if !origin_allowed(&headers, &gateway.config) {
        return refused_origin();
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let address = client_address(peer.ip(), &headers, &gateway.config.trusted_proxies);
    let oversize = gateway.config.frame_bytes.saturating_mul(OVERSIZE);
    upgrade
        .read_buffer_size(SOCKET_BUFFER)
        .write_buffer_size(SOCKET_BUFFER)
        .max_write_buffer_size(MAX_WRITE_BUFFER)
        .max_frame_size(oversize)
        .max_message_size(oversize)
        .on_upgrade(move |socket| {
            let tracker = gateway.tracker.clone();
            tracker.track_future(Connection::serve(gateway, socket, address))
        })
}

/// A browser hides why a handshake failed; a page that asks the same address over HTTP may read why (B76).
fn refused_origin() -> Response {
    let refused = HttpError::forbidden("this origin is not in server.allowed_origins");
    ([(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))], refused).into_response()
}
