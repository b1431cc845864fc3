//! The console without a pointer: every key stroke goes to where the focus is.

use anyhow::{Result, ensure};
use fantoccini::key::Key;
use serde_json::json;

use super::driver::Driver;
use super::page::Page;
use super::people::Visitor;
use super::support::ServerBuilder;

const ENTER: char = '\u{e007}';
const TAB: char = '\u{e004}';
const ESCAPE: char = '\u{e00c}';

/// A key pressed while another is held.
fn chord(held: Key, key: &str) -> String {
    format!("{}{key}", char::from(held))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_works_from_sign_in_to_end_with_the_keyboard_only() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = driver.open(&server.url("/console"), 1_400, 860).await?;
    anna.until(r#"document.activeElement === $("name")"#).await?;
    anna.keys(&format!("Anna{ENTER}")).await?;
    anna.until(r#"$("connection")?.dataset.state === "ready" && shown("online")"#).await?;
    tab_to(&anna, "cap").await?;
    anna.keys(&format!(
        "{}1{ENTER}",
        chord(Key::Control, "a") + &char::from(Key::Null).to_string()
    ))
    .await?;
    anna.settles(r#"text("status")"#, &json!("Online · 0 of 1")).await?;

    let mut ming = Visitor::asks(&server, "Ming", "Hello?").await?;
    anna.until(r#"all("session").length === 1"#).await?;
    let mut sofia = Visitor::asks(&server, "Sofia", "Anybody?").await?;
    anna.until(r#"$("line").dataset.total === "1""#).await?;
    anna.keys(&chord(Key::Alt, &char::from(Key::Down).to_string())).await?;
    anna.settles(r#"text("visitor")"#, &json!("Ming")).await?;
    anna.until(r#"document.activeElement === $("composer")"#).await?;
    anna.keys(&format!("Good day{ENTER}")).await?;
    ming.hears("Good day").await?;

    palette(&anna, "end conv").await?;
    anna.until(r#"document.activeElement === $("end") && text("end") === "End it now""#).await?;
    ensure!(
        anna.eval(r#"shown("ended")"#).await? == false,
        "ended without having been asked twice"
    );
    anna.keys(&ENTER.to_string()).await?;
    anna.until(r#"shown("ended")"#).await?;
    // The place that became free goes to who waits.
    anna.until(r#"all("session").length === 2 && $("line").dataset.total === "0""#).await?;
    palette(&anna, "go to sofia").await?;
    anna.settles(r#"text("visitor")"#, &json!("Sofia")).await?;
    anna.keys(&chord(Key::Alt, "n")).await?;
    anna.until(r#"document.activeElement === $("note-input")"#).await?;
    anna.keys(&format!("waited long{ENTER}")).await?;
    anna.until(r#"all("note-entry").length === 1"#).await?;
    anna.keys(&chord(Key::Alt, "n")).await?;
    anna.until(r#"document.activeElement === $("composer")"#).await?;
    anna.keys(&format!("Here I am{ENTER}")).await?;
    sofia.hears("Here I am").await?;

    anna.keys(&chord(Key::Control, "/")).await?;
    anna.until(r#"$("help-dialog").open && $("help-dialog").textContent.includes("Alt + L")"#)
        .await?;
    anna.keys(&ESCAPE.to_string()).await?;
    anna.until(r#"!$("help-dialog").open"#).await?;
    anna.keys(&chord(Key::Alt, "s")).await?;
    anna.until(r#"document.activeElement === $("search")"#).await?;
    anna.keys(&chord(Key::Alt, "c")).await?;
    anna.until(r#"document.activeElement === $("composer")"#).await?;
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_in_line_is_claimed_with_two_keys() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = super::people::agent(&driver, &server, "Anna", (1_400, 860)).await?;
    anna.fill("cap", "1").await?;
    anna.click("online").await?;
    anna.settles(r#"text("status")"#, &json!("Online · 0 of 1")).await?;
    let _ming = Visitor::asks(&server, "Ming", "Hello?").await?;
    anna.until(r#"all("session").length === 1"#).await?;
    let mut sofia = Visitor::asks(&server, "Sofia", "Anybody?").await?;
    anna.until(
        r#"$("line").dataset.total === "1" && $("line-entry").textContent.includes("No. 1")"#,
    )
    .await?;
    anna.keys(&chord(Key::Alt, "l")).await?;
    anna.until(r#"shown("error") && text("error").includes("raise the number")"#).await?;
    sofia.says("Still here").await?;
    anna.until(r#"$("line").dataset.total === "1""#).await
}

/// Walks with Tab until the focus is there.
async fn tab_to(page: &Page, id: &str) -> Result<()> {
    for _ in 0..40 {
        let there = page.eval(&format!(r#"document.activeElement === $("{id}")"#)).await?;
        if there == json!(true) {
            return Ok(());
        }
        page.keys(&TAB.to_string()).await?;
    }
    anyhow::bail!("{id} is not reached with Tab");
}

/// Runs a command by a few of its letters.
async fn palette(page: &Page, letters: &str) -> Result<()> {
    page.keys(&chord(Key::Control, "k")).await?;
    page.until(r#"$("palette").open && document.activeElement === $("palette-input")"#).await?;
    page.keys(letters).await?;
    page.until(r#"all("palette-option").length > 0"#).await?;
    page.keys(&ENTER.to_string()).await?;
    page.until(r#"!$("palette").open"#).await
}
