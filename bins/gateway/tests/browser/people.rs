//! The people of the tests: what each of them does first, and all that their page shows.

use anyhow::Result;
use serde_json::{Value, json};

use super::driver::Driver;
use super::page::Page;
use super::support::{Client, Server};

/// All that a visitor's page shows.
pub(crate) const VISITOR: &str = r#"({
    status: document.querySelector("kefu-visitor").dataset.status,
    agent: text("agent-name"), messages: messages(),
})"#;

/// All that a console shows.
pub(crate) const CONSOLE: &str = r#"({
    availability: [$("status").dataset.status, text("status"), $("cap").value],
    sessions: all("session").map((row) => [row.dataset.sessionId, row.dataset.unread, row.ariaCurrent]),
    line: $("line").dataset.total,
    visitor: text("visitor"), note: text("note"), messages: messages(),
})"#;

/// A visitor on the demo page who has asked for somebody.
pub(crate) async fn visitor(
    driver: &Driver,
    server: &Server,
    name: &str,
    (width, height): (u32, u32),
) -> Result<Page> {
    let page = driver.open(&server.url("/"), width, height).await?;
    page.press("name", name).await?;
    page.click("start").await?;
    page.until(r#"shown("composer")"#).await?;
    Ok(page)
}

/// An agent who has signed in and is online.
pub(crate) async fn agent(
    driver: &Driver,
    server: &Server,
    name: &str,
    (width, height): (u32, u32),
) -> Result<Page> {
    let page = driver.open(&server.url("/console"), width, height).await?;
    page.press("name", name).await?;
    page.click("login").await?;
    page.until(r#"$("connection").dataset.state === "ready""#).await?;
    page.until(r#"$("status").dataset.status === "offline""#).await?;
    page.click("online").await?;
    page.until(r#"$("status").dataset.status === "online""#).await?;
    Ok(page)
}

/// A visitor without a browser: a socket with a demo token of this name.
pub(crate) async fn wire_visitor(server: &Server, name: &str) -> Result<(Client, Value)> {
    let request = reqwest::Client::new()
        .post(server.url("/demo/token"))
        .json(&json!({"role": "user", "name": name}));
    let token: Value = request.send().await?.error_for_status()?.json().await?;
    Client::connect(server, json!({"token": token["token"], "source": "test"})).await
}
