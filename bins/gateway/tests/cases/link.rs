//! A wire that a test can cut or hold: one connection, carried over loopback.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::Server;

/// Carries the first connection to [`Link::address`] to a server.
pub(crate) struct Link {
    /// Where a client connects instead of to the server.
    pub(crate) address: SocketAddr,
    up: watch::Sender<bool>,
    down: watch::Sender<bool>,
    task: JoinSet<()>,
}

impl Link {
    /// An open wire to a server.
    pub(crate) async fn to(server: &Server) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (up, up_open) = watch::channel(true);
        let (down, down_open) = watch::channel(true);
        let mut task = JoinSet::new();
        task.spawn(carry(listener, server.address, up_open, down_open));
        Ok(Self { address, up, down, task })
    }

    /// Holds what the server says. What the client says still arrives.
    pub(crate) fn hold_answers(&self) {
        self.down.send_replace(false);
    }

    /// Holds everything, as a peer whose network died without a word.
    pub(crate) fn stall(&self) {
        self.up.send_replace(false);
        self.down.send_replace(false);
    }

    /// Lets everything through again, what was held first.
    pub(crate) fn release(&self) {
        self.up.send_replace(true);
        self.down.send_replace(true);
    }

    /// Ends both halves without a close frame. What was held is lost.
    pub(crate) async fn cut(mut self) {
        self.task.shutdown().await;
    }
}

async fn carry(
    listener: TcpListener,
    server: SocketAddr,
    up: watch::Receiver<bool>,
    down: watch::Receiver<bool>,
) {
    let Ok((client, _)) = listener.accept().await else { return };
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Whichever half ends first ends the other, as a closed socket does.
    tokio::select! {
        () = pump(from_client, to_server, up) => {}
        () = pump(from_server, to_client, down) => {}
    }
}

/// Carries one direction while its gate is open.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut buffer = [0; 4_096];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
