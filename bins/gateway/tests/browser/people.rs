//! The people of the tests: what each of them does first, and all that their page shows.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::driver::Driver;
use super::page::Page;
use super::support::{Client, Server};

/// All that a visitor's page shows.
pub(crate) const VISITOR: &str = r#"({
    status: widget.dataset.status,
    agent: text("agent-name"), messages: messages(),
})"#;

/// All that a console shows.
pub(crate) const CONSOLE: &str = r#"({
    availability: [$("status").dataset.status, text("status"), $("cap").value],
    sessions: all("session").map((row) => [row.dataset.sessionId, row.dataset.unread, row.ariaCurrent]),
    line: $("line").dataset.total,
    visitor: text("visitor"), note: text("note"), messages: messages(),
})"#;

/// A visitor on the demo page who has opened the widget.
pub(crate) async fn visitor(
    driver: &Driver,
    server: &Server,
    name: &str,
    size: (u32, u32),
) -> Result<Page> {
    visitor_at(driver, &server.url("/"), name, size).await
}

/// The same at any address of the demo page.
pub(crate) async fn visitor_at(
    driver: &Driver,
    url: &str,
    name: &str,
    (width, height): (u32, u32),
) -> Result<Page> {
    let page = driver.open(url, width, height).await?;
    page.press("name", name).await?;
    page.click("launcher").await?;
    page.until(r#"shown("composer")"#).await?;
    Ok(page)
}

/// An agent who has signed in and is online.
pub(crate) async fn agent(
    driver: &Driver,
    server: &Server,
    name: &str,
    size: (u32, u32),
) -> Result<Page> {
    agent_at(driver, &server.url("/console"), name, size).await
}

/// The same at any address of the console.
pub(crate) async fn agent_at(
    driver: &Driver,
    url: &str,
    name: &str,
    (width, height): (u32, u32),
) -> Result<Page> {
    let page = driver.open(url, width, height).await?;
    page.press("name", name).await?;
    page.click("login").await?;
    page.until(r#"$("connection")?.dataset.state === "ready""#).await?;
    page.until(r#"$("status").dataset.status === "offline""#).await?;
    page.click("online").await?;
    page.until(r#"$("status").dataset.status === "online""#).await?;
    Ok(page)
}

/// A supervisor who has signed in and sees the board.
pub(crate) async fn supervisor(
    driver: &Driver,
    server: &Server,
    name: &str,
    (width, height): (u32, u32),
) -> Result<Page> {
    let page = driver.open(&server.url("/console?role=supervisor"), width, height).await?;
    page.press("name", name).await?;
    page.click("login").await?;
    page.until(r#"$("connection")?.dataset.state === "ready" && shown("board")"#).await?;
    Ok(page)
}

/// A demo token of this name.
async fn demo_token(server: &Server, role: &str, name: &str) -> Result<Value> {
    let request = reqwest::Client::new()
        .post(server.url("/demo/token"))
        .json(&json!({"role": role, "name": name}));
    let token: Value = request.send().await?.error_for_status()?.json().await?;
    Ok(token["token"].clone())
}

/// A visitor without a browser: a socket with a demo token of this name.
pub(crate) async fn wire_visitor(server: &Server, name: &str) -> Result<(Client, Value)> {
    let token = demo_token(server, "user", name).await?;
    Client::connect(server, json!({"token": token, "source": "test"})).await
}

/// An agent without a browser, online for so many sessions and with the first visitor: the socket, and the session.
pub(crate) async fn wire_agent(server: &Server, cap: u32) -> Result<(Client, String)> {
    let token = demo_token(server, "agent", "Anna").await?;
    let (mut agent, _) = Client::connect(server, json!({"token": token})).await?;
    agent.send("chat.agent.online", json!({"maxSessions": cap})).await?;
    let new = agent.expect("chat.session.new").await?;
    Ok((agent, session_of(&new)?))
}

/// A visitor without a browser, and the session that was opened.
pub(crate) struct Visitor {
    pub(crate) socket: Client,
    pub(crate) session: String,
    token: Value,
    said: usize,
}

impl Visitor {
    /// Consults and says something.
    pub(crate) async fn asks(server: &Server, name: &str, text: &str) -> Result<Self> {
        let token = demo_token(server, "user", name).await?;
        let hello = json!({"token": token, "source": "shop"});
        let (socket, connected) = Client::connect(server, hello).await?;
        let session = session_of(&connected)?;
        let mut visitor = Self { socket, session, token, said: 0 };
        visitor.says(text).await?;
        Ok(visitor)
    }

    pub(crate) async fn says(&mut self, text: &str) -> Result<()> {
        self.said += 1;
        self.socket.say(&self.session, &self.said.to_string(), text).await?;
        Ok(())
    }

    /// Waits for this text of an agent.
    pub(crate) async fn hears(&mut self, text: &str) -> Result<()> {
        let heard = |frame: &Value| frame["content"] == text && frame["senderType"] == "agent";
        self.socket.expect_where("chat.message.new", heard).await?;
        Ok(())
    }

    pub(crate) async fn ends(&mut self) -> Result<()> {
        self.socket.call("chat.session.end", json!({"sessionId": self.session})).await?;
        Ok(())
    }

    /// Asks for somebody once more, after the last session has ended.
    pub(crate) async fn comes_back(&mut self, text: &str) -> Result<()> {
        let hello = json!({"token": self.token, "source": "shop"});
        self.session = session_of(&self.socket.call("chat.connect", hello).await?)?;
        self.says(text).await
    }
}

fn session_of(connected: &Value) -> Result<String> {
    Ok(connected["sessionId"].as_str().context("a session")?.to_owned())
}
