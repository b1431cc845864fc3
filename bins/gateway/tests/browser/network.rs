//! The network fails while both windows are open.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::driver::Driver;
use super::page::Page;
use super::people::{agent_at, visitor_at};
use super::support::ServerBuilder;
use super::wire::Wire;

const CUT: Duration = Duration::from_secs(20);
const SAID: &str = "messages().map(({ seq, sender, body }) => [seq, sender, body])";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_of_20_s_while_both_type_loses_and_doubles_nothing() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let wire = Wire::to(server.address).await?;
    let driver = Driver::start().await?;
    let anna = agent_at(&driver, &wire.url("/console"), "Anna", (900, 700)).await?;
    let ming = visitor_at(&driver, &wire.url("/"), "Ming", (480, 720)).await?;
    anna.click("session").await?;
    ming.say("before").await?;
    ming.last_is("before", "read").await?;

    wire.cut();
    let begin = Instant::now();
    for number in 1..=3 {
        ming.say(&format!("visitor {number}")).await?;
        anna.say(&format!("agent {number}")).await?;
    }
    ming.press("composer", "half a sentence").await?;
    for page in [&ming, &anna] {
        page.until(r#"$("connection").dataset.state === "reconnecting""#).await?;
        page.settles("last().state", &json!("sending")).await?;
    }
    // tidy: the length of the cut is the case
    tokio::time::sleep_until(begin + CUT).await;
    wire.mend();
    // What the page had in memory is gone: what it kept must do.
    ming.reload().await?;

    for page in [&ming, &anna] {
        page.until(
            r#"messages().length === 7 && messages().every(({ state }) => state === "read")"#,
        )
        .await?;
    }
    ming.settles(r#"$("composer").value"#, &json!("half a sentence")).await?;
    let said = ming.eval(SAID).await?;
    anna.settles(SAID, &said).await?;
    ensure!(by(&said, "user") == ["before", "visitor 1", "visitor 2", "visitor 3"], "{said}");
    ensure!(by(&said, "agent") == ["agent 1", "agent 2", "agent 3"], "{said}");
    Ok(())
}

fn by<'a>(said: &'a Value, sender: &str) -> Vec<&'a str> {
    let messages = said.as_array().into_iter().flatten();
    messages.filter(|m| m[1] == sender).filter_map(|m| m[2].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_comes_back_from_the_background_catches_up_at_once_b73() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let wire = Wire::to(server.address).await?;
    let driver = Driver::start().await?;
    let ming = visitor_at(&driver, &wire.url("/"), "Ming", (480, 720)).await?;
    ming.say("I wait").await?;
    ming.last_is("I wait", "stored").await?;
    for (round, event) in ["visibilitychange", "pageshow", "online"].into_iter().enumerate() {
        wire.kill_present();
        comes_back(&ming, event, round).await?;
    }
    Ok(())
}

/// The socket is dead without a word; the event alone makes the page notice, long before a heartbeat would.
async fn comes_back(page: &Page, event: &str, round: usize) -> Result<()> {
    let text = format!("round {round}");
    page.say(&text).await?;
    page.last_is(&text, "sending").await?;
    let begin = Instant::now();
    let target = if event == "visibilitychange" { "document" } else { "window" };
    page.run(&format!(r#"{target}.dispatchEvent(new Event("{event}"))"#)).await?;
    page.last_is(&text, "stored").await?;
    let took = begin.elapsed();
    ensure!(took < Duration::from_secs(14), "{event}: noticed only after {took:?}");
    Ok(())
}
