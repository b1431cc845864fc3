//! The people of the tests: what each of them does first, and all that their page shows.

use anyhow::Result;
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
