//! Whole conversations over a real socket: whatever frames a logged-in person sends, the connection lives
//! on or is closed with a code of the contract, every answer is a frame of the contract, and the next
//! person is served.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use kefu_core::ErrorCode;
use kefu_protocol::{CloseCode, Outbound, ServerFrame};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::Shape;
use crate::{Violation, ensure};

/// Conversations: one line is one frame, and a line that is not UTF-8 is a binary one. The first line may
/// be `as agent`. `SESSION`, `USER` and `AGENT` stand for a real session and real tokens.
pub const SHAPE: Shape = Shape {
    name: "handler",
    words: &[
        b"\n",
        b"as agent\n",
        b"SESSION",
        b"AGENT",
        b"null",
        b"-1",
        b"\"\"",
        b"{}",
        b"\xff\n",
        b"\n{\"event\":\"chat.session.end\",\"payload\":{\"sessionId\":\"SESSION\"}}\n",
        b"\n{\"event\":\"chat.queue.list\"}\n",
        b"\n{\"event\":\"chat.agent.offline\"}\n",
        b"\n{\"event\":\"chat.agent.online\",\"payload\":{\"maxSessions\":1}}\n",
    ],
    mended: |bytes| bytes,
};

/// How long a frame may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Labels the frames of the target itself.
const OURS: &str = "of the target";
/// Frames of one conversation.
const MAX_FRAMES: usize = 64;

/// A server, and two people whom it knows.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where it listens.
    pub address: SocketAddr,
    /// A user's token.
    pub user: String,
    /// An agent's token.
    pub agent: String,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Sends the frames of `data` to the server, then sees whether it serves the next one.
///
/// # Errors
/// What does not hold.
pub async fn target(place: &Place, data: &[u8]) -> Result<(), Violation> {
    let (is_agent, lines) = match data.strip_prefix(b"as agent") {
        Some(rest) => (true, rest),
        None => (false, data.strip_prefix(b"as user").unwrap_or(data)),
    };
    let token = if is_agent { &place.agent } else { &place.user };
    let mut socket = login(place, token).await?;
    let session = match next(&mut socket).await? {
        Next::Frame(ServerFrame::Connected(connected), _) => connected.session_id,
        other => return Err(Violation::new(format!("login: {other:?}"))),
    };
    let session = session.map_or("1".to_owned(), |session| session.to_string());
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(MAX_FRAMES)
    {
        let message = match std::str::from_utf8(line) {
            Err(_) => Message::binary(line.to_vec()),
            Ok(text) => Message::text(
                text.replace("SESSION", &session)
                    .replace("USER", &place.user)
                    .replace("AGENT", &place.agent),
            ),
        };
        // Fails once the server has closed; why it did is read below.
        if socket.send(message).await.is_err() {
            break;
        }
    }
    drop(socket.send(ping()).await);
    until_pong_or_close(&mut socket).await?;
    let mut next_one = login(place, &place.agent).await?;
    next_one.send(ping()).await.map_err(|why| Violation::new(format!("next one: {why}")))?;
    match until_pong_or_close(&mut next_one).await? {
        End::Alive => Ok(()),
        End::Closed(code) => Err(Violation::new(format!("the next one is closed with {code}"))),
    }
}

#[derive(Debug)]
enum Next {
    Frame(ServerFrame, bool),
    Closed(CloseCode),
}

enum End {
    Alive,
    Closed(CloseCode),
}

fn ping() -> Message {
    Message::text(format!(r#"{{"event":"chat.ping","ref":"{OURS}"}}"#))
}

async fn login(place: &Place, token: &str) -> Result<Socket, Violation> {
    let url = format!("ws://{}/ws", place.address);
    let opened = timeout(PATIENCE, connect_async_with_config(url, None, true)).await;
    let opened = opened.map_err(|_| Violation::new("socket: not opened in time"))?;
    let (mut socket, _) = opened.map_err(|why| Violation::new(format!("socket: {why}")))?;
    let frame = format!(r#"{{"event":"chat.connect","payload":{{"token":"{token}"}}}}"#);
    let sent = socket.send(Message::text(frame)).await;
    sent.map_err(|why| Violation::new(format!("socket: {why}")))?;
    Ok(socket)
}

async fn until_pong_or_close(socket: &mut Socket) -> Result<End, Violation> {
    loop {
        match next(socket).await? {
            Next::Closed(code) => return Ok(End::Closed(code)),
            Next::Frame(ServerFrame::Pong(_), true) => return Ok(End::Alive),
            Next::Frame(_, _) => {}
        }
    }
}

/// The next frame, and whether it answers one of the target's own.
async fn next(socket: &mut Socket) -> Result<Next, Violation> {
    loop {
        let message = timeout(PATIENCE, socket.next()).await;
        let message = message.map_err(|_| Violation::new("silence: neither answer nor close"))?;
        match message {
            Some(Ok(Message::Text(text))) => return frame(&text),
            Some(Ok(Message::Close(close))) => return closed(close.as_ref()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            other => return Err(Violation::new(format!("no close code: {other:?}"))),
        }
    }
}

fn frame(text: &str) -> Result<Next, Violation> {
    let outbound = Outbound::parse(text)
        .map_err(|why| Violation::new(format!("not a frame of the contract: {why}: {text}")))?;
    if let ServerFrame::Error(error) = &outbound.frame {
        ensure(error.code != ErrorCode::Internal, || format!("internal error: {text}"))?;
    }
    let is_ours = outbound.reference.is_some_and(|label| label.as_str() == OURS);
    Ok(Next::Frame(outbound.frame, is_ours))
}

fn closed(frame: Option<&CloseFrame>) -> Result<Next, Violation> {
    let code = frame.map(|frame| u16::from(frame.code));
    let known = code.and_then(CloseCode::from_code);
    known.map(Next::Closed).ok_or_else(|| Violation::new(format!("no close code: {code:?}")))
}
