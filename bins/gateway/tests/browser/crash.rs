//! The gateway is killed while both windows are open.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::driver::{Driver, free_port};
use super::people::{agent, visitor};
use super::support::ServerBuilder;

/// Who said what, in order, and where it is stored.
const SAID: &str = "messages().map(({ seq, sender, body }) => [seq, sender, body])";
const READY: &str = r#"$("connection").dataset.state === "ready""#;
const CUT: &str = r#"$("connection").dataset.state === "reconnecting""#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_loses_and_doubles_nothing_on_either_side() -> Result<()> {
    let listen = format!("127.0.0.1:{}", free_port()?).parse()?;
    let mut server = ServerBuilder::default().with_own_secret().listen(listen).start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", (900, 700)).await?;
    let ming = visitor(&driver, &server, "Ming", (420, 720)).await?;
    anna.click("session").await?;
    anna.say("good day").await?;
    anna.last_is("good day", "read").await?;

    // The last ones may or may not be stored when the gateway dies.
    for text in ["one", "two", "three"] {
        ming.say(text).await?;
    }
    server.kill()?;
    ming.until(CUT).await?;
    anna.until(CUT).await?;
    ming.say("four").await?;
    ming.last_is("four", "sending").await?;
    ming.say("five").await?;
    anna.say("hello?").await?;
    anna.last_is("hello?", "sending").await?;
    let _server = server.restart().await?;

    for page in [&ming, &anna] {
        page.until(READY).await?;
        page.until(
            r#"messages().length === 7 && messages().every(({ state }) => state === "read")"#,
        )
        .await?;
    }
    let said = ming.eval(SAID).await?;
    anna.settles(SAID, &said).await?;
    ensure!(seqs(&said) == (1..=7).collect::<Vec<_>>(), "no gap, none twice: {said}");
    ensure!(by(&said, "user") == ["one", "two", "three", "four", "five"], "in order: {said}");
    ensure!(by(&said, "agent") == ["good day", "hello?"], "in order: {said}");
    anna.settles(r#"text("status")"#, &json!("Online · 1 of 10")).await?;

    for page in [&ming, &anna] {
        let complaints = page.complaints().await?;
        let other: Vec<_> = complaints.iter().filter(|text| !text.contains("net::ERR_")).collect();
        ensure!(other.is_empty(), "only the outage itself is an error: {other:?}");
    }
    Ok(())
}

fn seqs(said: &Value) -> Vec<u64> {
    said.as_array().into_iter().flatten().filter_map(|message| message[0].as_u64()).collect()
}

fn by<'a>(said: &'a Value, sender: &str) -> Vec<&'a str> {
    let messages = said.as_array().into_iter().flatten();
    messages.filter(|m| m[1] == sender).filter_map(|m| m[2].as_str()).collect()
}
