//! Who somebody is, where a page comes from, and words that are meant to do harm.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use kefu_core::{Clock, Role, SystemClock};
use kefu_gateway::auth::{Authenticator, Claims};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{Client, Server, ServerBuilder};
use crate::{session_id, text};

const SECRET: &str = "a secret of this file's own, long enough for anybody";

/// A user's token, signed with this file's secret.
fn token(sub: &str, name: &str) -> Result<String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let expires_at = clock.now().after(Duration::from_secs(3_600));
    let claims = Claims {
        sub: sub.to_owned(),
        role: Role::User,
        name: Some(name.to_owned()),
        balance: None,
        expires_at,
    };
    Ok(Authenticator::hs256(SECRET.as_bytes(), clock)?.mint(&claims)?)
}

/// Identity is always enforced: kefu has no anonymous visitors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b92_nobody_gets_in_without_a_token_that_holds() -> Result<()> {
    let server = Server::start().await?;
    let (_known, connected) = Client::visitor(&server, "user").await?;
    let good = server.user("user");
    let (body, _) = good.rsplit_once('.').context("a signature")?;
    let expired = server.token_for("user", Role::User, None, Duration::ZERO);
    let by_another_key = token("user", "user")?;
    for claimed in [
        json!({}),
        json!({"token": null}),
        json!({"token": ""}),
        json!({"token": &good[..good.len() / 2]}),
        json!({"token": format!("{body}.")}),
        json!({"token": body}),
        json!({"token": by_another_key}),
        json!({"token": expired}),
        json!({"token": "", "userId": "user", "sessionId": connected["sessionId"]}),
    ] {
        let mut client = Client::open(&server).await?;
        let error = client.refused("chat.connect", claimed.clone()).await?;
        ensure!(error["code"] == "unauthenticated", "{claimed}: {error}");
        ensure!(client.gone().await?.code == Some(4001), "{claimed}");
    }
    Ok(())
}

/// Words stay words: they are stored and sent as they are, and no page makes markup of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_markup_and_control_characters_do_no_harm() -> Result<()> {
    let server = ServerBuilder::default().set("KEFU__AUTH__SECRET", SECRET).start().await?;
    let harmful = "<img src=x onerror=alert(1)> <a href=\"javascript:alert(1)\">x</a> \u{202e}";
    let (mut user, connected) = {
        let connect = json!({"token": token("user", harmful)?, "source": harmful});
        Client::connect(&server, connect).await?
    };
    let session = session_id(&connected);
    user.say(&session, "k1", harmful).await?;
    let page = user.call("chat.history", crate::after(&session, 0)).await?;
    let stored = &page["messages"][0];
    ensure!(stored["content"] == harmful && stored["msgType"] == "text", "A4: {stored}");
    let rate = |words: &str| json!({"sessionId": session, "rating": 1, "content": words});
    ensure!(user.call("chat.session.rate", rate(harmful)).await?["content"] == harmful, "A4");

    for control in ['\0', '\u{8}', '\u{1b}', '\u{7f}', '\u{85}'] {
        let words = format!("a{control}b");
        let refusal = user.refused("chat.message.send", text(&session, "bad", &words)).await?;
        ensure!(refusal["code"] == "bad_request", "M1: {refusal}");
        let refusal = user.refused("chat.session.rate", rate(&words)).await?;
        ensure!(refusal["code"] == "bad_request", "M1: {refusal}");
        let connect = json!({"token": token("user", "user")?, "source": words});
        ensure!(user.refused("chat.connect", connect).await?["code"] == "bad_request", "T4");
    }
    let (_other, connected) = {
        let connect = json!({"token": token("other", "a\u{8}b")?, "source": "test"});
        Client::connect(&server, connect).await?
    };
    ensure!(connected["sessionId"].is_string(), "a bad claim is left out (T4): {connected}");

    for path in ["/", "/console"] {
        let answer = reqwest::get(server.url(path)).await?;
        let policy = answer.headers()["content-security-policy"].to_str()?.to_owned();
        ensure!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }
    for path in ["/client.js", "/widget.js", "/index.js", "/console.js"] {
        let answer = reqwest::get(server.url(path)).await?;
        ensure!(answer.status() == 200, "{path}");
        let script = answer.text().await?;
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            ensure!(!script.contains(way), "{path} uses {way}");
        }
    }
    Ok(())
}

/// Opens a socket as a browser would, with the headers it adds by itself.
async fn handshake(server: &Server, headers: &[(&'static str, &str)]) -> Result<Option<Value>> {
    let mut request = format!("ws://{}/ws", server.address).into_client_request()?;
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse()?);
    }
    let mut socket = match connect_async(request).await {
        Ok((socket, _)) => socket,
        Err(Error::Http(refusal)) if refusal.status() == 403 => return Ok(None),
        Err(error) => bail!(error),
    };
    socket.send(Message::text(r#"{"event":"chat.history","payload":{"sessionId":"1"}}"#)).await?;
    while let Some(frame) = socket.next().await {
        if let Message::Close(Some(frame)) = frame? {
            return Ok(Some(u16::from(frame.code).into()));
        }
    }
    bail!("it ends without a close frame")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b103_a_foreign_page_gets_no_socket_and_a_cookie_is_no_identity() -> Result<()> {
    let server = Server::start().await?;
    let cookie = format!("token={}; session={}", server.user("user"), server.user("user"));
    for origin in ["https://evil.test", "null", "http://127.0.0.1:1"] {
        let socket = handshake(&server, &[("origin", origin), ("cookie", &cookie)]).await?;
        ensure!(socket.is_none(), "{origin} was let in");
    }
    let own = format!("http://{}", server.address);
    let closed = handshake(&server, &[("origin", &own), ("cookie", &cookie)]).await?;
    ensure!(closed == Some(json!(4000)), "the token comes in the first frame: {closed:?}");
    Ok(())
}
