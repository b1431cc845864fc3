//! Bad input through real sockets: each gets a clear error, and nothing is lost.

mod support;

use std::time::Duration;

use anyhow::{Result, ensure};
use kefu_core::Role;
use serde_json::{Value, json};
use support::{Client, Server, ServerBuilder};
use tokio_tungstenite::tungstenite::Message;

fn text(session: &Value, key: &str, content: &str) -> Value {
    json!({"sessionId": session, "msgType": "text", "content": content, "clientMsgId": key})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_frames_are_named_and_twenty_close_the_connection() -> Result<()> {
    let server = Server::start().await?;
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    for (frame, code) in [
        ("not json", "bad_request"),
        ("[]", "bad_request"),
        (r#"{"event": 7}"#, "bad_request"),
        (r#"{"event": "game.move", "payload": {}}"#, "unknown_event"),
        (r#"{"event": "chat.nothing", "payload": {}}"#, "unknown_event"),
        (r#"{"event": "chat.message.send", "payload": {"clientMsgId": "k"}}"#, "bad_request"),
        (r#"{"event": "chat.message.ack", "payload": {"msgId": 5}}"#, "bad_request"),
        (r#"{"event": "chat.message.ack", "payload": {"msgId": "-5"}}"#, "bad_request"),
    ] {
        client.send_raw(frame).await?;
        let error = client.expect("chat.error").await?;
        ensure!(error["code"] == code, "{frame}: {error}");
        ensure!(error["traceId"].is_string(), "the log carries the same trace");
    }
    client.say(connected["sessionId"].as_str().unwrap_or_default(), "k", "still here").await?;
    for _ in 0..20 {
        client.send_raw("{").await?;
    }
    ensure!(client.gone().await?.code == Some(1008));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_identity_is_refused_and_closed() -> Result<()> {
    let server = Server::start().await?;
    let good = server.user("user");
    let truncated = good[..good.len() - 3].to_owned();
    let expired = server.token_for("user", Role::User, None, Duration::ZERO);
    let foreign =
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyIiwicm9sZSI6InVzZXIiLCJleHAiOjk5OTk5OTk5OTl9.";
    for token in ["", "x", &truncated, &expired, foreign] {
        let mut client = Client::open(&server).await?;
        let error = client.refused("chat.connect", json!({"token": token})).await?;
        ensure!(error["code"] == "unauthenticated", "B92, {token:?}: {error}");
        ensure!(client.gone().await?.code == Some(4001));
    }
    let mut silent = Client::open(&server).await?;
    silent.send("chat.ping", json!({})).await?;
    ensure!(silent.gone().await?.code == Some(4000), "chat.connect comes first");
    let mut late = Client::open(&server).await?;
    ensure!(late.gone().await?.code == Some(4000), "chat.connect comes within 10 s");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_is_renewed_in_place_by_the_same_person_only() -> Result<()> {
    let server = Server::start().await?;
    let short = server.token_for("user", Role::User, None, Duration::from_secs(2));
    let (mut client, _) = Client::connect(&server, json!({"token": short, "source": "t"})).await?;
    let error = client.expect("chat.error").await?;
    ensure!(error["code"] == "token_expired", "{error}");
    let fresh = json!({"token": server.user("user"), "intent": "resume"});
    client.call("chat.connect", fresh).await?;
    let stolen = json!({"token": server.user("somebody"), "intent": "resume"});
    ensure!(client.refused("chat.connect", stolen).await?["code"] == "unauthenticated");
    ensure!(client.gone().await?.code == Some(4001));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_objects_do_not_exist() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut owner, connected) = Client::visitor(&server, "owner").await?;
    let session = connected["sessionId"].clone();
    agent.expect("chat.session.new").await?;
    let ack = owner.call("chat.message.send", text(&session, "k", "mine")).await?;
    let (mut other, _) = Client::visitor(&server, "other").await?;
    let (mut stranger, _) =
        Client::connect(&server, json!({"token": server.agent("stranger")})).await?;
    let reference = json!({"sessionId": session});
    let missing = json!({"sessionId": "1"});
    for client in [&mut other, &mut stranger] {
        for (event, payload) in [
            ("chat.history", reference.clone()),
            ("chat.message.send", text(&session, "x", "x")),
            ("chat.session.end", reference.clone()),
            ("chat.typing", json!({"sessionId": session, "isTyping": true})),
            ("chat.message.ack", json!({"msgId": ack["msgId"]})),
        ] {
            let error = client.refused(event, payload).await?;
            ensure!(error["code"] == "not_found", "A3, {event}: {error}");
        }
        let absent = client.refused("chat.history", missing.clone()).await?;
        let hidden = client.refused("chat.history", reference.clone()).await?;
        ensure!(absent["message"] == hidden["message"], "exactly as if it did not exist");
    }
    let roles = [
        ("chat.agent.online", json!({"maxSessions": 3})),
        ("chat.queue.list", json!({})),
        ("chat.agent.list", json!({})),
        ("chat.session.claim", reference.clone()),
        ("chat.session.transfer", json!({"sessionId": session, "targetAdminId": "agent"})),
    ];
    for (event, payload) in roles {
        let error = other.refused(event, payload).await?;
        ensure!(error["code"] == "forbidden", "{event}: {error}");
    }
    let rate = json!({"sessionId": session, "rating": 5, "content": ""});
    ensure!(agent.refused("chat.session.rate", rate).await?["code"] == "forbidden");
    let token = server.supervisor("boss");
    let (mut boss, _) = Client::connect(&server, json!({"token": token})).await?;
    boss.call("chat.history", reference).await?;
    ensure!(
        boss.refused("chat.message.send", text(&session, "b", "x")).await?["code"] == "forbidden"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_checked_and_never_cut() -> Result<()> {
    let server = Server::start().await?;
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    let session = connected["sessionId"].clone();
    client.call("chat.message.send", text(&session, "fits", &"客".repeat(500))).await?;
    for (content, code) in [
        ("客".repeat(501), "content_too_long"),
        (" \n\t ".to_owned(), "content_empty"),
        ("a\u{0}b".to_owned(), "bad_request"),
    ] {
        let error = client.refused("chat.message.send", text(&session, "bad", &content)).await?;
        ensure!(error["code"] == code && error["clientMsgId"] == "bad", "M1: {error}");
    }
    let image = json!({
        "sessionId": session, "msgType": "image", "clientMsgId": "i",
        "content": "/uploads/chat/20260128/00000000000000000000000000000000.png",
    });
    ensure!(client.refused("chat.message.send", image).await?["code"] == "bad_request", "M1");
    let other = client.refused("chat.message.send", text(&session, "fits", "other")).await?;
    ensure!(other["code"] == "conflict", "T2: {other}");
    let rating = json!({"sessionId": session, "rating": 6, "content": ""});
    ensure!(client.refused("chat.session.rate", rating).await?["code"] == "bad_request");
    let rating = json!({"sessionId": session, "rating": 1, "content": "x".repeat(501)});
    ensure!(client.refused("chat.session.rate", rating).await?["code"] == "content_too_long");
    let source = json!({"token": server.user("user"), "source": "x".repeat(129)});
    ensure!(client.refused("chat.connect", source).await?["code"] == "bad_request", "T4");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_and_oversized_frames_close_with_their_codes() -> Result<()> {
    let server = Server::start().await?;
    let (mut client, _) = Client::visitor(&server, "binary").await?;
    client.send_message(Message::binary(vec![1, 2, 3])).await?;
    ensure!(client.gone().await?.code == Some(1003));
    let (mut client, _) = Client::visitor(&server, "big").await?;
    client.send_raw("x".repeat(65_537)).await?;
    ensure!(client.gone().await?.code == Some(1009));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_sends_and_connections_are_told_so() -> Result<()> {
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__MESSAGE_BURST", 3)
        .set("KEFU__LIMITS__MESSAGES_PER_SECOND", 1)
        .start()
        .await?;
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    let session = connected["sessionId"].clone();
    for n in 0..6 {
        let payload = text(&session, &format!("k{n}"), "x");
        client.send("chat.message.send", payload).await?;
    }
    let first = client.expect("chat.error").await?;
    ensure!(first["code"] == "rate_limited" && first["clientMsgId"] == "k3", "L2: {first}");
    let wait = first["retryAfterMs"].as_u64().unwrap_or_default();
    ensure!((1..=1_000).contains(&wait), "{first}");
    for key in ["k4", "k5"] {
        ensure!(client.expect("chat.error").await?["clientMsgId"] == key, "M6");
    }
    // tidy: the pause that the server asked for.
    tokio::time::sleep(Duration::from_millis(wait)).await;
    let later = client.refused("chat.message.send", text(&session, "k4", "x")).await?;
    ensure!(later["code"] == "rate_limited", "k3 must come first (M6): {later}");
    ensure!(client.call("chat.message.send", text(&session, "k3", "x")).await?["seq"] == 4);

    let mut all = Vec::new();
    for _ in 0..9 {
        all.push(Client::visitor(&server, "user").await?);
    }
    let mut eleventh = Client::open(&server).await?;
    let payload = json!({"token": server.user("user"), "source": "t"});
    eleventh.refused("chat.connect", payload).await?;
    ensure!(eleventh.gone().await?.code == Some(4005), "L2");
    Ok(())
}

async fn upload(server: &Server, token: &str, name: &str, bytes: Vec<u8>) -> Result<(u16, Value)> {
    let part = reqwest::multipart::Part::bytes(bytes).file_name(name.to_owned());
    let form = reqwest::multipart::Form::new().part("file", part);
    let request = reqwest::Client::new().post(server.url("/api/v1/uploads")).multipart(form);
    let response = request.bearer_auth(token).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// A real PNG of exactly `size` bytes: the filler is a chunk that decoders ignore.
fn png_of(size: usize) -> Result<Vec<u8>> {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(8, 8).write_to(&mut png, image::ImageFormat::Png)?;
    let mut png = png.into_inner();
    let end = png.split_off(png.len() - 12);
    let filler = size - png.len() - end.len() - 12;
    let mut chunk = b"fiLl".to_vec();
    chunk.resize(4 + filler, 0);
    png.extend(u32::try_from(filler)?.to_be_bytes());
    png.extend(&chunk);
    png.extend(crc32(&chunk).to_be_bytes());
    png.extend(end);
    Ok(png)
}

/// The checksum of PNG chunks (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_judged_by_their_bytes_and_their_size() -> Result<()> {
    let server = Server::start().await?;
    let token = server.user("user");
    let (status, error) = upload(&server, &token, "a.png", png_of(1_000)?).await?;
    ensure!(status == 404 && error["error"]["code"] == "not_found", "no session yet: {error}");
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    for size in [2_097_151, 2_097_152] {
        let (status, answer) = upload(&server, &token, "a.png", png_of(size)?).await?;
        ensure!(status == 201, "2.10, {size}: {answer}");
    }
    let (status, error) = upload(&server, &token, "a.png", png_of(2_097_153)?).await?;
    ensure!(status == 413 && error["error"]["code"] == "payload_too_large", "2.10: {error}");
    let html = b"<html><script>alert(1)</script></html>".to_vec();
    for (name, bytes) in [("page.png", html), ("\"><img onerror>.png", b"<svg/>".to_vec())] {
        let (status, error) = upload(&server, &token, name, bytes).await?;
        ensure!(
            status == 415 && error["error"]["code"] == "unsupported_media_type",
            "B97: {error}"
        );
    }
    let (status, _) = upload(&server, "wrong", "a.png", png_of(1_000)?).await?;
    ensure!(status == 401);
    let (_, stored) = upload(&server, &token, "a.png", png_of(1_000)?).await?;
    let payload = json!({
        "sessionId": connected["sessionId"], "msgType": "image", "clientMsgId": "image",
        "content": stored["url"],
    });
    client.call("chat.message.send", payload).await?;
    let url = stored["url"].as_str().unwrap_or_default();
    let signed = reqwest::get(server.url(url)).await?;
    ensure!(signed.status() == 200 && signed.headers()["x-content-type-options"] == "nosniff");
    let unsigned = url.split('?').next().unwrap_or_default();
    ensure!(reqwest::get(server.url(unsigned)).await?.status().is_client_error(), "signed only");
    Ok(())
}
