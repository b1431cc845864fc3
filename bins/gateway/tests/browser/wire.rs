//! The network between browsers and a gateway, which a test can cut or let die without a word.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of a connection's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// Held for ever; nobody is told.
    Stalled,
    /// The connection ends.
    Cut,
}

/// Carries any number of connections to one gateway. Gone when dropped.
pub(crate) struct Wire {
    address: SocketAddr,
    /// That of the connections of now; what stalled stays in the list.
    flows: Arc<Mutex<Vec<watch::Sender<Flow>>>>,
    _task: JoinSet<()>,
}

impl Wire {
    /// An open wire.
    pub(crate) async fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let flows = Arc::new(Mutex::new(vec![watch::Sender::new(Flow::Open)]));
        let mut task = JoinSet::new();
        task.spawn(carry(listener, server, Arc::clone(&flows)));
        Ok(Self { address, flows, _task: task })
    }

    /// A URL of the gateway behind the wire.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Ends all connections and lets none through.
    pub(crate) fn cut(&self) {
        if let Some(flow) = self.flows().last() {
            flow.send_replace(Flow::Cut);
        }
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.flows().push(watch::Sender::new(Flow::Open));
    }

    /// The connections of now die without a word; later ones live.
    pub(crate) fn kill_present(&self) {
        if let Some(flow) = self.flows().last() {
            flow.send_replace(Flow::Stalled);
        }
        self.mend();
    }

    fn flows(&self) -> std::sync::MutexGuard<'_, Vec<watch::Sender<Flow>>> {
        self.flows.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn carry(
    listener: TcpListener,
    server: SocketAddr,
    flows: Arc<Mutex<Vec<watch::Sender<Flow>>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let flow = {
            let flows = flows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            flows.last().map(watch::Sender::subscribe)
        };
        if let Some(flow) = flow.filter(|flow| *flow.borrow() != Flow::Cut) {
            connections.spawn(join(client, server, flow));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn join(client: TcpStream, server: SocketAddr, mut flow: watch::Receiver<Flow>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (up, down) = (flow.clone(), flow.clone());
    tokio::select! {
        () = pump(from_client, to_server, up) => {}
        () = pump(from_server, to_client, down) => {}
        _ = flow.wait_for(|flow| *flow == Flow::Cut) => {}
    }
}

/// Carries one direction while it is open.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut flow: watch::Receiver<Flow>) {
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if flow.wait_for(|flow| *flow == Flow::Open).await.is_err() {
            break;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    // A dead network does not pass on that one side hung up either.
    let _ = flow.wait_for(|flow| *flow != Flow::Stalled).await;
}
