//! Accepts connections and speaks HTTP/1 on them, with an end to how long a peer may say nothing (L1).

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// From the start of a connection, or its last answer, to the end of the next request's head. A peer
/// that stops half-way would otherwise keep its file descriptor for ever. Longer than the minute for
/// which reverse proxies keep an idle connection to use it again.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(75);

/// Bytes of a request's head, and of what is read ahead of a body.
const HEAD_BYTES: usize = 64 * 1_024;

/// Before accepting is tried again. Nothing tells when a file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves until `closing`, then waits for the requests under way; dropping it cuts them off.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    head_within: Duration,
    closing: CancellationToken,
) {
    let mut connections = JoinSet::new();
    accept_all(&listener, router, head_within, &closing, &mut connections).await;
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn accept_all(
    listener: &TcpListener,
    router: Router,
    head_within: Duration,
    closing: &CancellationToken,
    connections: &mut JoinSet<()>,
) {
    // Kept over the ends of others, or each of them would cut its pause short.
    let mut next = pin!(accept(listener));
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            (stream, peer) = next.as_mut() => {
                connections.spawn(attend(stream, peer, router.clone(), head_within, closing.clone()));
                next.set(accept(listener));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The next connection. Out of file descriptors it says so, and waits.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        let error = match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => error,
        };
        // Its peer gave up before its turn came.
        if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
            continue;
        }
        tracing::warn!(%error, "no connection can be accepted for now");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// One connection, to its end or to its upgrade.
async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    head_within: Duration,
    closing: CancellationToken,
) {
    // Frames are small and wanted at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_within)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Where it listens, what ends it, and the task itself, which ends when dropped.
    async fn start(
        head_within: Duration,
    ) -> io::Result<(SocketAddr, CancellationToken, JoinSet<()>)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/", get(|| async { "here" }));
        let closing = CancellationToken::new();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, router, head_within, closing.clone()));
        Ok((address, closing, server))
    }

    /// Sends `bytes`, then reads until the server closes.
    async fn until_closed(address: SocketAddr, bytes: &[u8]) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(bytes).await?;
        let mut answer = String::new();
        match tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await {
            Ok(_) => Ok(answer),
            Err(_) => Err(io::Error::other(format!("it stays open after {answer:?}"))),
        }
    }

    #[tokio::test]
    async fn a_peer_that_stops_half_way_is_let_go() -> io::Result<()> {
        let (address, _closing, _server) = start(Duration::from_millis(200)).await?;
        until_closed(address, b"").await?;
        until_closed(address, b"GET / HTTP/1.1\r\nHost: a\r\n").await?;
        let answer = until_closed(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await?;
        assert!(answer.ends_with("here"), "served first, closed as idle after it: {answer}");
        Ok(())
    }

    #[tokio::test]
    async fn an_endless_head_is_refused() -> io::Result<()> {
        let (address, _closing, _server) = start(PATIENCE).await?;
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(2 * HEAD_BYTES));
        let answer = until_closed(address, head.as_bytes()).await?;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
        Ok(())
    }

    #[tokio::test]
    async fn idle_connections_do_not_outlive_the_server() -> io::Result<()> {
        let (address, closing, _server) = start(PATIENCE).await?;
        let mut idle = TcpStream::connect(address).await?;
        idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await?;
        let mut answer = [0; 4];
        idle.read_exact(&mut answer).await?;
        closing.cancel();
        let rest = tokio::time::timeout(PATIENCE, idle.read_to_end(&mut Vec::new())).await;
        assert!(rest.is_ok(), "closed at once (L3)");
        Ok(())
    }
}
