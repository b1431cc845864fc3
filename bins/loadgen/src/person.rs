//! One connection: a token, a socket, frames of JSON.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// How long the set-up waits for one frame.
const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds that a token lives.
const TOKEN_LIFE: u64 = 3_600;

/// A connected visitor or agent.
pub(crate) struct Person {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    role: &'a str,
    exp: u64,
}

impl Person {
    /// Connects and sends `chat.connect`.
    pub(crate) async fn connect(
        gateway: SocketAddr,
        secret: &str,
        sub: &str,
        role: &str,
    ) -> Result<Self> {
        let config = WebSocketConfig::default().read_buffer_size(4_096).write_buffer_size(0);
        let url = format!("ws://{gateway}/ws");
        let (socket, _) = connect_async_with_config(url, Some(config), true).await?;
        let mut person = Self { socket };
        let token = token(secret, sub, role)?;
        person.send("chat.connect", &json!({"token": token, "source": "loadgen"})).await?;
        person.expect("chat.connected").await?;
        Ok(person)
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, event: &str, payload: &Value) -> Result<()> {
        let frame = json!({"event": event, "payload": payload}).to_string();
        Ok(self.socket.send(Message::text(frame)).await?)
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Result<Value> {
        loop {
            match self.socket.next().await.context("the connection ended")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(frame) => bail!("the gateway closed the connection: {frame:?}"),
                // Answered by the library.
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        }
    }

    /// The payload of the next frame of this event; others are skipped.
    pub(crate) async fn expect(&mut self, event: &str) -> Result<Value> {
        let wait = async {
            loop {
                let mut frame = self.next().await?;
                if frame["event"] == event {
                    return anyhow::Ok(frame["payload"].take());
                }
                if frame["event"] == "chat.error" {
                    bail!("refused: {frame}");
                }
            }
        };
        timeout(PATIENCE, wait).await.with_context(|| format!("waiting for {event}"))?
    }
}

#[expect(clippy::disallowed_methods, reason = "a load generator lives in real time")]
fn token(secret: &str, sub: &str, role: &str) -> Result<String> {
    let exp = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + TOKEN_LIFE;
    let key = EncodingKey::from_secret(secret.as_bytes())?;
    Ok(encode(&Header::default(), &Claims { sub, role, exp }, &key)?)
}
