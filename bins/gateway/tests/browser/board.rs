//! The supervisor's board: figures that follow what happens, sessions looked into unnoticed, and why
//! somebody waited.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::axe::is_accessible;
use super::driver::Driver;
use super::people::{Visitor, agent, supervisor};
use super::support::ServerBuilder;

const WIDE: (u32, u32) = (1_400, 860);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_figures_follow_arrivals_agents_and_answers() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let eva = supervisor(&driver, &server, "Eva", WIDE).await?;
    eva.settles(r#"text("figure-waiting")"#, &json!("0")).await?;
    let mut ming = Visitor::asks(&server, "Ming", "Hello?").await?;
    let _sofia = Visitor::asks(&server, "Sofia", "Anybody?").await?;
    eva.settles(r#"text("figure-waiting")"#, &json!("2")).await?;
    eva.until(r#"/\d s/.test(text("figure-longest"))"#).await?;
    eva.until(r#"all("line-entry").length === 2 && !$("claim")"#).await?;

    let anna = agent(&driver, &server, "Anna", WIDE).await?;
    anna.fill("cap", "2").await?;
    anna.click("online").await?;
    eva.settles(r#"text("figure-waiting")"#, &json!("0")).await?;
    eva.settles(r#"$("agent-load")?.dataset.active"#, &json!("2")).await?;
    eva.until(r#"$("agent-load").textContent.includes("Anna")"#).await?;
    anna.click_one("session", "Ming").await?;
    anna.say("Good day").await?;
    ming.hears("Good day").await?;
    eva.until(r#"text("figure-response") !== "–""#).await?;
    eva.until(r#"$("chart-arrivals").textContent.includes("2 in the last hour")"#).await?;
    let bars = r#"[...$("chart-arrivals").querySelectorAll("rect")].filter((bar) => bar.height.baseVal.value > 0).length"#;
    eva.until(&format!("[1, 2].includes({bars})")).await?;
    eva.until(r#"$("chart-response").querySelectorAll("polyline").length === 2"#).await?;
    eva.until(r#"$("chart-wait").querySelector("polyline").points.length > 1"#).await?;
    for dark in [false, true] {
        eva.dark(dark).await?;
        is_accessible(&eva).await.context("the board")?;
    }
    eva.resize(320, 640).await?;
    is_accessible(&eva).await.context("a narrow board")?;
    let root = "document.documentElement";
    eva.until(&format!("{root}.scrollWidth <= {root}.clientWidth")).await?;
    eva.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_looks_on_without_being_noticed_and_notes() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let mut ming = Visitor::asks(&server, "Ming", "Where is my refund?").await?;
    let anna = agent(&driver, &server, "Anna", WIDE).await?;
    anna.until(r#"$("session")?.dataset.unread === "1""#).await?;
    let eva = supervisor(&driver, &server, "Eva", WIDE).await?;
    eva.click("live-session").await?;
    eva.settles("last().body", &json!("Where is my refund?")).await?;
    eva.until(r#"shown("read-only") && !shown("composer") && shown("note-input")"#).await?;
    ming.says("Hello?").await?;
    eva.settles("last().body", &json!("Hello?")).await?;
    // The agent has not opened it: nobody has read anything.
    anna.settles(r#"$("session").dataset.unread"#, &json!("2")).await?;
    eva.until(r#"messages().every(({ state }) => state !== "read")"#).await?;

    eva.press("note-input", "Refund is approved.").await?;
    eva.click("note-add").await?;
    eva.until(r#"all("note-entry").length === 1"#).await?;
    anna.click("session").await?;
    anna.settles(
        r#"$("note-entry")?.querySelector(".body").textContent"#,
        &json!("Refund is approved."),
    )
    .await?;
    anna.say("It is approved.").await?;
    ming.hears("It is approved.").await?;
    eva.settles("last().body", &json!("It is approved.")).await?;
    is_accessible(&eva).await.context("looking on")?;

    eva.until(r#"text("explain-summary").includes("Anna took over")"#).await?;
    eva.until(r#"$("explain-record").dataset.result === "assigned""#).await?;
    eva.reload().await?;
    eva.settles("last().body", &json!("It is approved.")).await?;
    ming.says("Thank you").await?;
    eva.settles("last().body", &json!("Thank you")).await?;
    eva.click("dismiss").await?;
    eva.until(r#"shown("board") && !shown("messages")"#).await?;
    let inbox = format!("{:?}", ming.socket.take_inbox());
    ensure!(!inbox.contains("Refund is approved") && !inbox.contains("Eva"), "{inbox}");
    eva.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_somebody_waits_is_told_and_the_team_has_its_replies() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let _ming = Visitor::asks(&server, "Ming", "Hello?").await?;
    let eva = supervisor(&driver, &server, "Eva", WIDE).await?;
    eva.click("live-session").await?;
    eva.until(r#"text("explain-summary")?.includes("Nobody with room")"#).await?;
    eva.click("canned-open").await?;
    eva.press("canned-shortcut", "hi").await?;
    eva.press("canned-content", "Welcome, {{visitor}}!").await?;
    eva.click("canned-save").await?;
    eva.until(r#"all("canned-item").length === 1"#).await?;
    let anna = agent(&driver, &server, "Anna", WIDE).await?;
    anna.click("session").await?;
    anna.press("composer", "/hi").await?;
    anna.until(r#"all("canned-option").length === 1"#).await?;
    anna.click("canned-open").await?;
    anna.click("canned-item").await?;
    anna.until(r#"!shown("canned-save") && !shown("canned-delete")"#).await?;
    eva.is_clean().await?;
    anna.is_clean().await
}
