//! The console's and the board's pictures in the documents: made only when `KEFU_PICTURES=1`, so that a
//! test run leaves the working tree as it was.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::driver::Driver;
use super::page::Page;
use super::people::{Visitor, agent, supervisor};
use super::support::ServerBuilder;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_of_console_and_board() -> Result<()> {
    if std::env::var("KEFU_PICTURES").is_err() {
        return Ok(());
    }
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", (1_400, 860)).await?;
    anna.fill("cap", "3").await?;
    anna.click("online").await?;
    let mut people = Vec::new();
    for (name, text) in [
        ("Ming", "Hello! Is the blue vase still in stock?"),
        ("Sofia", "My parcel has not come yet"),
        ("Li Wei", "Can I still change the address?"),
        ("Jonas", "I would like to return a lamp"),
        ("Amara", "Do you ship to Lagos?"),
    ] {
        people.push(Visitor::asks(&server, name, text).await?);
    }
    anna.until(r#"all("session").length === 3 && $("line").dataset.total === "2""#).await?;
    anna.click_one("session", "Ming").await?;
    anna.say("Good morning, Ming. Yes: three are left. Shall I put one aside?").await?;
    people[0].hears("Good morning, Ming. Yes: three are left. Shall I put one aside?").await?;
    people[0].says("Yes, please").await?;
    anna.settles("last().body", &json!("Yes, please")).await?;
    anna.click("mode-note").await?;
    anna.press("note-input", "Bought the green one in spring; gift wrap again?").await?;
    anna.click("note-add").await?;
    anna.until(r#"all("note-entry").length === 1"#).await?;
    anna.click("mode-reply").await?;
    anna.press("composer", "It is yours until Friday.").await?;
    let eva = supervisor(&driver, &server, "Eva", (1_400, 860)).await?;
    eva.until(r#"text("figure-response") !== "–" && all("live-session").length === 5"#).await?;

    picture(&eva, "board.png").await?;
    picture(&anna, "console.png").await?;
    anna.dark(true).await?;
    picture(&anna, "console-dark.png").await?;
    anna.dark(false).await?;
    anna.resize(320, 640).await?;
    picture(&anna, "console-320.png").await?;
    anna.resize(1_400, 860).await?;
    anna.eval(r#"(() => { const list = $("language"); list.value = "zh-CN"; list.dispatchEvent(new Event("change")); return null; })()"#).await?;
    anna.settles("document.documentElement.lang", &json!("zh-CN")).await?;
    anna.until(r#"messages().length === 3 && all("note-entry").length === 1"#).await?;
    picture(&anna, "console-zh.png").await
}

async fn picture(page: &Page, name: &str) -> Result<()> {
    page.settles("document.activeElement.blur() ?? null", &Value::Null).await?;
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    tokio::fs::create_dir_all(&images).await?;
    Ok(tokio::fs::write(images.join(name), page.screenshot().await?).await?)
}
