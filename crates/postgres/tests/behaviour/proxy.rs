//! A wire to the server on which a test counts questions and cuts answers.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kefu_testkit::server::free_port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Ends with its last handle.
pub(crate) struct Proxy {
    port: u16,
    wire: Arc<Wire>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Wire {
    questions: AtomicUsize,
    lose: Mutex<Option<&'static [u8]>>,
}

impl Wire {
    fn is_to_be_lost(&self, body: &[u8]) -> bool {
        let mut lose = self.lose.lock().unwrap();
        let says = |what: &[u8]| body.windows(what.len()).any(|part| part == what);
        lose.take_if(|what| says(what)).is_some()
    }
}

impl Proxy {
    /// Before the server of `url`.
    pub(crate) async fn start(url: &str) -> Self {
        let address = url.split(['@', '/']).nth(3).expect("a host and port").to_owned();
        let port = free_port();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let wire = Arc::new(Wire::default());
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&wire);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                connections.spawn(carry(client, server, Arc::clone(&shared)));
            }
        });
        Self { port, wire, _tasks: tasks }
    }

    /// The URL of `database` by way of this.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// How often the server was asked for an answer.
    pub(crate) fn questions(&self) -> usize {
        self.wire.questions.load(Ordering::SeqCst)
    }

    /// Lets the next question through that says `what`, and cuts its answer.
    pub(crate) fn lose_answer_to(&self, what: &'static str) {
        *self.wire.lose.lock().unwrap() = Some(what.as_bytes());
    }
}

async fn carry(client: TcpStream, server: TcpStream, wire: Arc<Wire>) {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        () = ask(from_client, to_server, &wire) => {
            // The question is through when its answer comes, which nobody gets.
            let _ = from_server.read(&mut [0; 64]).await;
        }
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

/// Carries questions until the client ends, or until one whose answer is to be lost.
async fn ask(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, wire: &Wire) {
    // The first message has no kind.
    let length = client.read_u32().await.unwrap();
    let mut first = vec![0; length as usize - 4];
    client.read_exact(&mut first).await.unwrap();
    server.write_u32(length).await.unwrap();
    server.write_all(&first).await.unwrap();
    let mut is_lost = false;
    while let Ok(kind) = client.read_u8().await {
        let Ok(length) = client.read_u32().await else { return };
        let mut body = vec![0; length as usize - 4];
        if client.read_exact(&mut body).await.is_err() {
            return;
        }
        // Query and Sync are what the server answers.
        let asks = matches!(kind, b'Q' | b'S');
        if asks {
            wire.questions.fetch_add(1, Ordering::SeqCst);
        }
        is_lost |= wire.is_to_be_lost(&body);
        let mut message = vec![kind];
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(&body);
        if server.write_all(&message).await.is_err() {
            return;
        }
        if asks && is_lost {
            return;
        }
    }
}
