//! A client of the wire, in plain JSON.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::{PATIENCE, Server, until};

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The close code, if a close frame came.
    pub(crate) code: Option<u16>,
}

/// One WebSocket. Frames that nobody waited for yet stay in order in `inbox`.
pub(crate) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    inbox: VecDeque<Value>,
    next_ref: u64,
}

impl Client {
    /// An open socket that has said nothing yet.
    pub(crate) async fn open(server: &Server) -> Result<Self> {
        Self::open_at(server.address).await
    }

    /// An open socket to whoever listens there.
    pub(crate) async fn open_at(address: SocketAddr) -> Result<Self> {
        let config = WebSocketConfig::default().read_buffer_size(4_096).write_buffer_size(0);
        let url = format!("ws://{address}/ws");
        let (socket, _) = connect_async_with_config(url, Some(config), true).await?;
        Ok(Self { socket, inbox: VecDeque::new(), next_ref: 0 })
    }

    /// A visitor who consults: the socket, and `chat.connected`.
    pub(crate) async fn visitor(server: &Server, sub: &str) -> Result<(Self, Value)> {
        Self::connect(server, json!({"token": server.user(sub), "source": "test"})).await
    }

    /// A visitor with a balance who consults.
    pub(crate) async fn rich_visitor(
        server: &Server,
        sub: &str,
        balance: i64,
    ) -> Result<(Self, Value)> {
        let token = server.user_with_balance(sub, balance);
        Self::connect(server, json!({"token": token, "source": "test"})).await
    }

    /// An agent who is online with a cap.
    pub(crate) async fn agent(server: &Server, sub: &str, cap: u32) -> Result<(Self, Value)> {
        let token = server.agent(sub);
        let (mut agent, connected) = Self::connect(server, json!({"token": token})).await?;
        agent.call("chat.agent.online", json!({"maxSessions": cap})).await?;
        Ok((agent, connected))
    }

    /// An open socket after `chat.connect` with this payload.
    pub(crate) async fn connect(server: &Server, payload: Value) -> Result<(Self, Value)> {
        let mut client = Self::open(server).await?;
        let connected = client.call("chat.connect", payload).await?;
        Ok((client, connected))
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, event: &str, payload: Value) -> Result<()> {
        self.send_raw(json!({"event": event, "payload": payload}).to_string()).await
    }

    /// Sends any text.
    pub(crate) async fn send_raw(&mut self, text: impl Into<String>) -> Result<()> {
        Ok(self.socket.send(Message::text(text.into())).await?)
    }

    /// Sends any WebSocket message.
    pub(crate) async fn send_message(&mut self, message: Message) -> Result<()> {
        Ok(self.socket.send(message).await?)
    }

    /// Sends a frame and returns its direct answer's payload; a `chat.error` is an error.
    pub(crate) async fn call(&mut self, event: &str, payload: Value) -> Result<Value> {
        let answer = self.ask(event, payload).await?;
        ensure!(answer["event"] != "chat.error", "{event} was refused: {answer}");
        Ok(answer["payload"].clone())
    }

    /// Sends a frame that must be refused, and returns the error's payload.
    pub(crate) async fn refused(&mut self, event: &str, payload: Value) -> Result<Value> {
        let answer = self.ask(event, payload).await?;
        ensure!(answer["event"] == "chat.error", "{event} was not refused: {answer}");
        Ok(answer["payload"].clone())
    }

    /// Sends a frame and returns its direct answer, whole.
    pub(crate) async fn ask(&mut self, event: &str, payload: Value) -> Result<Value> {
        self.next_ref += 1;
        let reference = format!("r{}", self.next_ref);
        let frame = json!({"event": event, "payload": payload, "ref": reference});
        self.send_raw(frame.to_string()).await?;
        self.wait(|frame| frame["ref"] == reference.as_str()).await.context(event.to_owned())
    }

    /// Says a text in a session; returns the `server_ack`.
    pub(crate) async fn say(&mut self, session: &str, key: &str, text: &str) -> Result<Value> {
        let payload =
            json!({"sessionId": session, "msgType": "text", "content": text, "clientMsgId": key});
        self.call("chat.message.send", payload).await
    }

    /// The payload of the next frame of this event.
    pub(crate) async fn expect(&mut self, event: &str) -> Result<Value> {
        let frame = self.wait(|frame| frame["event"] == event).await;
        Ok(frame.with_context(|| format!("waiting for {event}"))?["payload"].clone())
    }

    /// The payload of the next frame of this event that fits.
    pub(crate) async fn expect_where(
        &mut self,
        event: &str,
        fits: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<Value> {
        let frame = self.wait(|frame| frame["event"] == event && fits(&frame["payload"])).await;
        Ok(frame.with_context(|| format!("waiting for {event}"))?["payload"].clone())
    }

    /// The payload of the next frame of this event, from a client that shows signs of life until then:
    /// for servers with a short `presence.ttl_ms`.
    pub(crate) async fn expect_awake(&mut self, event: &str) -> Result<Value> {
        until(event, async || {
            self.call("chat.ping", json!({})).await?;
            Ok(self.inbox.iter().any(|frame| frame["event"] == event))
        })
        .await?;
        self.expect(event).await
    }

    /// That no frame of this event has come by the time the server answered a later `chat.ping`:
    /// frames of one connection keep their order (M6), so the pong closes the case.
    pub(crate) async fn expect_none(&mut self, event: &str) -> Result<()> {
        self.call("chat.ping", json!({})).await?;
        match self.inbox.iter().find(|frame| frame["event"] == event) {
            Some(frame) => bail!("unexpected {frame}"),
            None => Ok(()),
        }
    }

    /// Every frame that nobody waited for yet.
    pub(crate) fn inbox(&self) -> impl Iterator<Item = &Value> {
        self.inbox.iter()
    }

    /// Takes every frame that nobody waited for yet.
    pub(crate) fn take_inbox(&mut self) -> Vec<Value> {
        self.inbox.drain(..).collect()
    }

    /// The next frame of any kind. Nothing is lost when it is dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<Value> {
        self.wait(|_| true).await
    }

    /// Waits for the end of the connection, keeping what comes before it.
    pub(crate) async fn gone(&mut self) -> Result<Gone> {
        let end = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Close(frame))) => {
                        return Gone { code: frame.map(|frame| frame.code.into()) };
                    }
                    Some(Ok(Message::Text(text))) => {
                        if let Ok(frame) = serde_json::from_str(&text) {
                            self.inbox.push_back(frame);
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Gone { code: None },
                }
            }
        };
        timeout(Duration::from_secs(90), end).await.context("the connection stays open")
    }

    /// A polite close.
    pub(crate) async fn close(mut self) -> Result<()> {
        Ok(self.socket.close(None).await?)
    }

    async fn wait(&mut self, fits: impl Fn(&Value) -> bool + Send + Sync) -> Result<Value> {
        if let Some(index) = self.inbox.iter().position(&fits) {
            return self.inbox.remove(index).context("the index is inside");
        }
        let arrival = async {
            loop {
                let frame = self.receive().await?;
                if fits(&frame) {
                    return Ok(frame);
                }
                self.inbox.push_back(frame);
            }
        };
        let waited = timeout(PATIENCE, arrival).await;
        waited.with_context(|| format!("nothing came; unclaimed: {:?}", self.inbox))?
    }

    /// Reads the next text frame; answers pings as every client does.
    async fn receive(&mut self) -> Result<Value> {
        loop {
            match self.socket.next().await.context("the connection ended")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(frame) => bail!("closed: {frame:?}"),
                Message::Binary(_) => bail!("a binary frame"),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// Does `work` while these people show signs of life: for servers with a short `presence.ttl_ms`.
pub(crate) async fn awake_during<T>(
    people: &mut [&mut Client],
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::pin!(work);
    let mut beats = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = beats.tick() => {
                for person in people.iter_mut() {
                    person.call("chat.ping", json!({})).await?;
                }
            }
        }
    }
}
