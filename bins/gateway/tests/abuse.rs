//! Peers that want to harm: each costs a bounded amount, and nobody else notices.

mod support;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{Client, Server, ServerBuilder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// More files than that are not received at once.
const UPLOADS_AT_ONCE: usize = 64;

/// The beginning of an upload that never goes on.
async fn stuck_upload(server: &Server, token: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address).await?;
    let request = format!(
        "POST /api/v1/uploads HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 2000000\r\n\
         Expect: 100-continue\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).await?;
    // The server asks for the body once it begins to read it.
    let mut answer = [0; 12];
    timeout(support::PATIENCE, stream.read_exact(&mut answer)).await??;
    ensure!(&answer == b"HTTP/1.1 100", "{}", String::from_utf8_lossy(&answer));
    Ok(stream)
}

async fn upload(server: &Server, token: &str) -> Result<(u16, Value)> {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(8, 8).write_to(&mut png, image::ImageFormat::Png)?;
    let part = reqwest::multipart::Part::bytes(png.into_inner()).file_name("a.png");
    let form = reqwest::multipart::Form::new().part("file", part);
    let request = reqwest::Client::new().post(server.url("/api/v1/uploads")).multipart(form);
    let response = request.bearer_auth(token).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_never_end_take_no_more_than_their_share() -> Result<()> {
    let server =
        ServerBuilder::default().set("KEFU__LIMITS__UPLOADS_PER_MINUTE", 1_000).start().await?;
    let (_visitor, _) = Client::visitor(&server, "user").await?;
    let token = server.user("user");
    let mut stuck = Vec::new();
    for _ in 0..UPLOADS_AT_ONCE {
        stuck.push(stuck_upload(&server, &token).await?);
    }
    let (status, error) = upload(&server, &token).await?;
    ensure!(status == 503 && error["error"]["code"] == "overloaded", "L1: {error}");
    ensure!(error["error"]["retryAfterMs"].is_u64(), "{error}");
    drop(stuck);
    let (status, stored) = upload(&server, &token).await?;
    ensure!(status == 201, "their turns are free again: {stored}");
    Ok(())
}

/// A device that takes nothing is given up; the other devices of the same person and everybody else
/// go on, and the memory it costs is the limit of its queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_never_reads_is_closed_and_disturbs_nobody() -> Result<()> {
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__MESSAGE_BURST", 100_000)
        .set("KEFU__LIMITS__OUTBOUND_BYTES", 65_536)
        .start()
        .await?;
    let (mut bystander, other) = Client::visitor(&server, "bystander").await?;
    let (mut writer, connected) = Client::visitor(&server, "user").await?;
    let session = connected["sessionId"].as_str().context("a session")?.to_owned();
    let resume = json!({"token": server.user("user"), "intent": "resume"});
    let (mut deaf, _) = Client::connect(&server, resume).await?;
    let content = "客".repeat(500);
    for round in 0.. {
        for n in 0..200 {
            let key = format!("{round}-{n}");
            let payload = json!({"sessionId": session, "msgType": "text", "content": content, "clientMsgId": key});
            writer.send("chat.message.send", payload).await?;
        }
        writer.say(&session, &format!("{round}"), "all of them are stored").await?;
        let metrics = reqwest::get(server.url("/metrics")).await?.text().await?;
        if metrics.contains("kefu_slow_consumer_total 1") {
            break;
        }
        // What the system's socket buffers hold comes on top of the queue.
        ensure!(round < 50, "still open (L1): {metrics}");
    }
    ensure!(deaf.gone().await?.code == Some(4004), "L1");
    bystander.say(other["sessionId"].as_str().context("a session")?, "k", "undisturbed").await?;
    writer.say(&session, "last", "still here").await?;
    let again = json!({"token": server.user("user"), "intent": "resume"});
    let (_, resumed) = Client::connect(&server, again).await?;
    ensure!(resumed["session"]["sessionId"] == session.as_str(), "{resumed}");
    Ok(())
}

/// What a peer can put into a frame or a head without being anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_and_endless_input_ends_in_an_answer() -> Result<()> {
    let server = Server::start().await?;
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    let session = connected["sessionId"].as_str().context("a session")?.to_owned();
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    for frame in [
        "[".repeat(60_000),
        r#"{"a":"#.repeat(12_000),
        format!(r#"{{"event":"chat.ping","payload":{{"x":{deep}}}}}"#),
        r#"{"event":"chat.ping","payload":{"x":"\ud800"}}"#.to_owned(),
    ] {
        client.send_raw(frame).await?;
        ensure!(client.expect("chat.error").await?["code"] == "bad_request");
    }
    client.say(&session, "k", "still here").await?;

    let mut endless = TcpStream::connect(server.address).await?;
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(200_000));
    // It may be cut off while it is still writing.
    let _ = endless.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(10), endless.read_to_end(&mut answer)).await?;
    ensure!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "L1");
    Ok(())
}
