//! The pictures in the documents: made only when `KEFU_PICTURES=1`, so that a test run leaves the
//! working tree as it was.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

use super::driver::Driver;
use super::page::Page;
use super::people::{agent, visitor, wire_visitor};
use super::support::ServerBuilder;
use super::talk::picture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_for_the_documents() -> Result<()> {
    if std::env::var("KEFU_PICTURES").is_err() {
        return Ok(());
    }
    let folder = TempDir::new()?;
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", (1_200, 800)).await?;
    anna.fill("cap", "2").await?;
    anna.click("online").await?;
    anna.settles(r#"text("status")"#, &json!("Online · 0 of 2")).await?;

    let ming = visitor(&driver, &server, "Ming", (760, 720)).await?;
    anna.click("session").await?;
    ming.say("Hello! Is the blue vase still in stock?").await?;
    ming.last_is("Hello! Is the blue vase still in stock?", "read").await?;
    anna.say("Good morning, Ming. Which one do you mean?").await?;
    ming.last_is("Good morning, Ming. Which one do you mean?", "read").await?;
    ming.attach(&picture(folder.path())?).await?;
    anna.settles("[last().image, last().state]", &json!([true, "read"])).await?;
    anna.say("That one, yes: three are left. Shall I put one aside for you?").await?;
    anna.settles("last().state", &json!("read")).await?;
    ming.say("Yes, please").await?;
    anna.last_is("Yes, please", "read").await?;

    let (mut sofia, connected) = wire_visitor(&server, "Sofia").await?;
    let session = connected["sessionId"].as_str().context("a session")?;
    sofia.say(session, "s1", "My parcel has not come yet").await?;
    let (_li_wei, _) = wire_visitor(&server, "Li Wei").await?;
    let (_jonas, _) = wire_visitor(&server, "Jonas").await?;
    anna.until(r#"$("line").dataset.total === "2" && all("session").length === 2"#).await?;
    anna.until(r#"all("session").some((row) => row.dataset.unread === "1")"#).await?;
    ming.settles("[last().state, last().image]", &json!(["read", false])).await?;

    ming.run("document.activeElement.blur()").await?;
    pictures_of_the_widget(&ming).await
}

/// Light, dark, as narrow as a small phone, in Chinese.
async fn pictures_of_the_widget(page: &Page) -> Result<()> {
    save(page, "widget").await?;
    page.dark(true).await?;
    save(page, "widget-dark").await?;
    page.dark(false).await?;
    page.resize(320, 640).await?;
    save(page, "widget-320").await?;
    page.resize(760, 720).await?;
    page.click("language").await?;
    page.settles(r#"text("agent-name")"#, &json!("Anna 正在为您服务")).await?;
    page.settles("last().image", &json!(false)).await?;
    page.until("messages().length === 5 && messages()[2].image").await?;
    save(page, "widget-zh").await
}

/// Writes what the page shows, once nothing moves any more.
async fn save(page: &Page, name: &str) -> Result<()> {
    page.run_async("document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))").await?;
    page.until(r#"roots.every((root) => root.getAnimations().length === 0)"#).await?;
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    tokio::fs::create_dir_all(&images).await?;
    tokio::fs::write(images.join(format!("{name}.png")), page.screenshot().await?).await?;
    Ok(())
}
