//! The console for everybody: small and huge windows, light and dark, two languages, and axe-core's rules.

use anyhow::{Context, Result, ensure};
use fantoccini::key::Key;
use serde_json::{Value, json};

use super::axe::is_accessible;
use super::driver::Driver;
use super::page::Page;
use super::people::{Visitor, agent};
use super::support::{Server, ServerBuilder};

/// The console's dialogs, each behind what opens it.
const DIALOGS: [(&str, &str); 3] =
    [("canned-open", "canned-dialog"), ("help-open", "help-dialog"), ("palette-open", "palette")];

async fn busy_desk(driver: &Driver, server: &Server, size: (u32, u32)) -> Result<(Page, Visitor)> {
    let anna = agent(driver, server, "Anna", size).await?;
    anna.fill("cap", "2").await?;
    anna.click("online").await?;
    let mut ming = Visitor::asks(server, "Ming", "Is the blue vase in stock?").await?;
    let long = format!("https://example.test/{}", "a".repeat(200));
    ming.says(&long).await?;
    anna.until(r#"all("session").length === 1"#).await?;
    Ok((anna, ming))
}

/// Nothing is wider than the window.
async fn fits(page: &Page, what: &str) -> Result<()> {
    let root = "document.documentElement";
    let over = page.eval(&format!("{root}.scrollWidth - {root}.clientWidth")).await?;
    ensure!(over == json!(0), "{what} is {over} px too wide");
    // Panes clip what is too wide for them: no control may be cut off.
    let cut = page
        .eval(
            r#"[...document.querySelectorAll("button, input, select, textarea")]
                .filter((one) => one.checkVisibility() && !one.closest(".modes, .attach, .scroller"))
                .filter((one) => { const { left, right } = one.getBoundingClientRect(); return left < 0 || right > innerWidth + 1; })
                .map((one) => one.dataset.testid ?? one.textContent)"#,
        )
        .await?;
    ensure!(cut == Value::Array(Vec::new()), "{what}: cut off {cut}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_320_pixels_every_pane_is_reached_and_nothing_is_cut_off() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let (anna, mut ming) = busy_desk(&driver, &server, (320, 640)).await?;
    fits(&anna, "the lists").await?;
    anna.click("session").await?;
    anna.until(r#"shown("composer") && !shown("search") && shown("connection")"#).await?;
    anna.say("Yes").await?;
    ming.hears("Yes").await?;
    fits(&anna, "the conversation").await?;
    anna.click("details").await?;
    anna.until(r#"shown("visitor-name") && !shown("composer")"#).await?;
    anna.click("transfer").await?;
    anna.until(r#"shown("transfer-none")"#).await?;
    fits(&anna, "the visitor").await?;
    anna.reload().await?;
    anna.until(r#"shown("visitor-name") && !shown("composer")"#).await?;
    anna.click("to-talk").await?;
    anna.click("back").await?;
    anna.until(r#"shown("search") && shown("session") && !shown("composer")"#).await?;
    for (open, dialog) in DIALOGS {
        anna.click(open).await?;
        anna.until(&format!(r#"$("{dialog}").open"#)).await?;
        fits(&anna, dialog).await?;
        anna.keys(&char::from(Key::Escape).to_string()).await?;
        anna.until(&format!(r#"!$("{dialog}").open"#)).await?;
    }
    anna.resize(3_840, 2_160).await?;
    fits(&anna, "a 4K window").await?;
    anna.until(r#"shown("search") && shown("composer") && shown("visitor-name")"#).await?;
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_serious_on_the_console_in_light_dark_and_narrow() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let signing_in = driver.open(&server.url("/console"), 1_400, 860).await?;
    signing_in.until(r#"shown("login")"#).await?;
    is_accessible(&signing_in).await.context("signing in")?;
    signing_in.press("name", "Bert").await?;
    signing_in.click("login").await?;
    signing_in.until(r#"$("connection")?.dataset.state === "ready""#).await?;
    is_accessible(&signing_in).await.context("an empty desk")?;

    let (anna, _ming) = busy_desk(&driver, &server, (1_400, 860)).await?;
    let _sofia = Visitor::asks(&server, "Sofia", "Anybody there?").await?;
    let _jonas = Visitor::asks(&server, "Jonas", "Hello?").await?;
    anna.until(r#"all("session").length === 2 && $("line").dataset.total === "1""#).await?;
    anna.click_one("session", "Ming").await?;
    anna.say("Three of them are left.").await?;
    anna.click("mode-note").await?;
    anna.press("note-input", "Buys often.").await?;
    anna.click("note-add").await?;
    anna.until(r#"all("note-entry").length === 1"#).await?;
    for dark in [false, true] {
        anna.dark(dark).await?;
        is_accessible(&anna).await.context("the desk")?;
        for (open, dialog) in DIALOGS {
            anna.click(open).await?;
            anna.until(&format!(r#"$("{dialog}").open"#)).await?;
            is_accessible(&anna).await.context(dialog)?;
            anna.keys(&char::from(Key::Escape).to_string()).await?;
            anna.until(&format!(r#"!$("{dialog}").open"#)).await?;
        }
    }
    anna.click("mode-reply").await?;
    anna.press("composer", "/").await?;
    anna.until(r#"shown("canned-menu")"#).await?;
    is_accessible(&anna).await.context("the menu of canned replies")?;
    anna.resize(320, 640).await?;
    is_accessible(&anna).await.context("a narrow window")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_speaks_chinese_when_asked_and_stays_so() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let (anna, _ming) = busy_desk(&driver, &server, (1_400, 860)).await?;
    anna.click("session").await?;
    anna.press("composer", "half a sen").await?;
    let choose = r#"(() => { const list = $("language"); list.value = "zh-CN"; list.dispatchEvent(new Event("change")); return null; })()"#;
    anna.eval(choose).await?;
    anna.settles("document.documentElement.lang", &json!("zh-CN")).await?;
    anna.settles(r#"text("status")"#, &json!("在线 · 1/2")).await?;
    anna.settles(r#"$("composer")?.value"#, &json!("half a sen")).await?;
    anna.settles(r#"text("visitor")"#, &json!("Ming")).await?;
    anna.reload().await?;
    anna.settles(r#"text("online") ?? text("offline")"#, &json!("下线")).await?;
    // No English word is left where the console itself speaks.
    let left = anna
        .eval(
            r#"[...document.querySelectorAll("button, label, h1, h2, h3, legend, dt, .hint, .empty")]
                .filter((one) => one.checkVisibility() && !one.closest('[data-testid="messages"], [data-testid="session"]'))
                .map((one) => one.textContent.trim())
                .filter((text) => /[A-Za-z]{3}/.test(text) && !["English简体中文", "Anna", "Ming"].includes(text))"#,
        )
        .await?;
    ensure!(left == Value::Array(Vec::new()), "still English: {left}");
    anna.is_clean().await
}
