//! What wants the agent's attention, and when it stops doing so: unread, new sessions, notifications.

use anyhow::{Context, Result};
use serde_json::json;

use super::driver::Driver;
use super::people::{Visitor, agent};
use super::support::ServerBuilder;

const WIDE: (u32, u32) = (1_400, 860);
/// The page as it is behind other windows, and what it shows on the desktop meanwhile.
const BEHIND: &str = r#"(() => {
    window.told = [];
    window.Notification = class {
        static permission = "granted";
        constructor(title, { body }) { window.told.push([title, body]); this.said = title; }
        close() { window.told.push(["closed", this.said]); }
    };
    window.behind = true;
    Object.defineProperty(document, "visibilityState", { get: () => (window.behind ? "hidden" : "visible") });
    return true;
})()"#;

fn row(name: &str) -> String {
    format!(r#"all("session").find((row) => row.textContent.includes("{name}"))"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b64_b81_what_one_device_reads_and_answers_is_done_on_the_other() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let desk = agent(&driver, &server, "Anna", WIDE).await?;
    let token = desk.eval(r#"JSON.parse(sessionStorage["kefu.console.identity"]).token"#).await?;
    let address = format!("/console#token={}", token.as_str().context("a token")?);
    let laptop = driver.open(&server.url(&address), WIDE.0, WIDE.1).await?;
    laptop.until(r#"$("status")?.dataset.status === "online""#).await?;
    laptop.settles("location.hash", &json!("")).await?;

    let mut ming = Visitor::asks(&server, "Ming", "Is the vase in stock?").await?;
    for page in [&desk, &laptop] {
        page.until(r#"$("session")?.dataset.unread === "1""#).await?;
        page.until(r#"$("session").dataset.fresh === "true""#).await?;
    }
    desk.click("session").await?;
    desk.until(r#"$("session").dataset.unread === "0""#).await?;
    laptop.until(r#"$("session").dataset.unread === "0""#).await?;
    laptop.until(r#"$("session").dataset.fresh === "false""#).await?;
    desk.say("Three of them.").await?;
    ming.hears("Three of them.").await?;

    // A reply clears the notice of an assignment too, where nothing was opened.
    let mut sofia = Visitor::asks(&server, "Sofia", "Where is my parcel?").await?;
    laptop.until(&format!(r#"{}?.dataset.fresh === "true""#, row("Sofia"))).await?;
    desk.click_one("session", "Sofia").await?;
    desk.say("On its way.").await?;
    sofia.hears("On its way.").await?;
    laptop.until(&format!(r#"{}.dataset.fresh === "false""#, row("Sofia"))).await?;
    laptop.settles("document.title", &json!("Agent console")).await?;
    for page in [&desk, &laptop] {
        page.is_clean().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_behind_other_windows_tells_on_the_desktop_and_in_its_title() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", WIDE).await?;
    anna.until(BEHIND).await?;
    let mut ming = Visitor::asks(&server, "Ming", "Is the vase in stock?").await?;
    anna.settles("document.title", &json!("(1) Agent console")).await?;
    anna.settles("window.told.at(-1)", &json!(["Ming", "Is the vase in stock?"])).await?;
    anna.until(r#"window.told.some(([title]) => title === "New visitor: Ming")"#).await?;
    // Shown in a window that nobody sees, it is not read.
    anna.click("session").await?;
    anna.settles("last().body", &json!("Is the vase in stock?")).await?;
    ming.says("Hello?").await?;
    anna.settles("document.title", &json!("(2) Agent console")).await?;
    anna.settles("window.told.at(-1)", &json!(["Ming", "Hello?"])).await?;

    anna.eval(r#"(() => { window.behind = false; document.dispatchEvent(new Event("visibilitychange")); return null; })()"#).await?;
    anna.settles("document.title", &json!("Agent console")).await?;
    anna.say("Yes").await?;
    ming.hears("Yes").await?;
    let count = anna.eval("window.told.length").await?;
    ming.says("Thanks").await?;
    anna.last_is("Thanks", "read").await?;
    anna.settles("window.told.length", &count).await?;
    anna.is_clean().await
}
