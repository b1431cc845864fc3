//! The reverse proxy before the gateways: Debian's HAProxy.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::parts::{Parts, bound_to_this};

/// How long it may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks whether it listens: it tells nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts it; returns once it takes connections.
///
/// # Errors
/// It does not start.
pub(super) async fn start(
    parts: &mut Parts,
    folder: &Path,
    listen: SocketAddr,
    gateways: [SocketAddr; 2],
) -> Result<()> {
    let path = folder.join("haproxy.cfg");
    std::fs::write(&path, configuration(listen, gateways)).context("cannot write haproxy.cfg")?;
    let mut command = bound_to_this("haproxy");
    // Not on everybody's path.
    let folders = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{folders}:/usr/sbin:/usr/local/sbin"));
    command.arg("-db").arg("-f").arg(&path);
    parts.start_silent("proxy", command)?;
    let listening = async {
        while TcpStream::connect(listen).await.is_err() {
            sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        listening = timeout(START_LIMIT, listening) => {
            listening.context("the proxy does not listen")
        }
        ended = parts.ended() => Err(ended.context("the proxy does not start")),
    }
}

/// What a proxy before gateways needs to do: balance over those that live, pass WebSockets on and
/// leave them open, and say where the client is.
///
/// The demo gives tokens only to pages that no proxy forwards, since a proxy is usually there for
/// others. This one listens on loopback, so it does not say that it forwards them.
fn configuration(listen: SocketAddr, [one, two]: [SocketAddr; 2]) -> String {
    format!(
        "defaults
    mode http
    timeout connect 2s
    timeout client 90s
    timeout server 90s
    timeout tunnel 1h
    retries 3
    option redispatch

frontend pages
    bind {listen}
    http-request set-header X-Forwarded-For %[src] unless {{ path /demo/token }}
    default_backend gateways

backend gateways
    balance roundrobin
    option httpchk GET /healthz
    default-server check inter 1s fall 2 rise 1
    server gateway-1 {one}
    server gateway-2 {two}
"
    )
}
