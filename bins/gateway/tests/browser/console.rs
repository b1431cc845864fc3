//! The agent's day at the console: visitors served side by side, drafts, canned replies, private notes,
//! what was before, and all of it from the keyboard. The visitors are plain sockets.

use anyhow::{Context, Result, ensure};
use fantoccini::key::Key;
use serde_json::json;
use tokio::time::Instant;

use super::driver::Driver;
use super::page::{DEADLINE, PAUSE, Page};
use super::people::{Visitor, agent, supervisor};
use super::support::{Server, ServerBuilder};

const WIDE: (u32, u32) = (1_400, 860);

async fn house() -> Result<(Server, Driver, Page)> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", WIDE).await?;
    Ok((server, driver, anna))
}

fn row(name: &str) -> String {
    format!(r#"all("session").find((row) => row.textContent.includes("{name}"))"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b81_three_visitors_are_served_side_by_side_and_drafts_outlive_a_reload() -> Result<()> {
    let (server, _driver, anna) = house().await?;
    let mut ming = Visitor::asks(&server, "Ming", "Is the vase in stock?").await?;
    let mut sofia = Visitor::asks(&server, "Sofia", "Where is my parcel?").await?;
    let mut jonas = Visitor::asks(&server, "Jonas", "Can I return this?").await?;
    anna.until(r#"all("session").length === 3"#).await?;
    anna.until(r#"all("session").every(({ dataset }) => dataset.unread === "1")"#).await?;
    anna.until(r#"all("session").every(({ dataset }) => dataset.fresh === "true")"#).await?;
    anna.until(r#"all("wait").every((wait) => wait.textContent !== "")"#).await?;
    anna.settles("document.title", &json!("(3) Agent console")).await?;

    for (visitor, name, answer) in [
        (&mut ming, "Ming", "Yes"),
        (&mut sofia, "Sofia", "On its way"),
        (&mut jonas, "Jonas", "Sure"),
    ] {
        anna.click_one("session", name).await?;
        anna.settles(r#"text("visitor")"#, &json!(name)).await?;
        anna.say(answer).await?;
        visitor.hears(answer).await?;
        anna.until(&format!(r#"{}.dataset.unread === "0""#, row(name))).await?;
        anna.until(&format!(r#"{}.dataset.fresh === "false""#, row(name))).await?;
    }
    anna.until(r#"all("wait").every((wait) => wait.textContent === "")"#).await?;
    anna.settles("document.title", &json!("Agent console")).await?;

    anna.press("composer", "You can bring it to").await?;
    anna.click_one("session", "Ming").await?;
    anna.settles(r#"$("composer").value"#, &json!("")).await?;
    anna.press("composer", "Three are left, shall").await?;
    anna.until(&format!(r#"{}.textContent.includes("Draft")"#, row("Jonas"))).await?;
    anna.reload().await?;
    anna.settles(r#"text("visitor")"#, &json!("Ming")).await?;
    anna.settles(r#"$("composer").value"#, &json!("Three are left, shall")).await?;
    anna.click_one("session", "Jonas").await?;
    anna.settles(r#"$("composer").value"#, &json!("You can bring it to")).await?;
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canned_reply_is_written_found_filled_in_and_deleted() -> Result<()> {
    let (server, _driver, anna) = house().await?;
    let mut ming = Visitor::asks(&server, "Ming", "Is my order on its way?").await?;
    anna.click("session").await?;
    anna.click("canned-open").await?;
    anna.press("canned-shortcut", "order").await?;
    anna.press(
        "canned-content",
        "Dear {{visitor}}, {{agent}} here: order {{order no}} comes {{日期}}.",
    )
    .await?;
    anna.click("canned-save").await?;
    anna.until(r#"all("canned-item").length === 1"#).await?;
    anna.click("canned-close").await?;

    anna.press("composer", "/ord").await?;
    anna.until(r#"shown("canned-menu") && all("canned-option").length === 1"#).await?;
    anna.press("composer", &String::from(char::from(Key::Enter))).await?;
    let filled = "Dear Ming, Anna here: order {{order no}} comes {{日期}}.";
    anna.settles(r#"$("composer").value"#, &json!(filled)).await?;
    // What it could not fill in is selected, one place after the other, and not sent before.
    for place in ["A17", "today"] {
        anna.keys(place).await?;
        anna.keys(&String::from(char::from(Key::Enter))).await?;
    }
    ming.hears("Dear Ming, Anna here: order A17 comes today.").await?;
    anna.until(r#"!shown("canned-menu") && $("composer").value === """#).await?;

    anna.reload().await?;
    anna.click("canned-open").await?;
    anna.click("canned-item").await?;
    anna.click("canned-delete").await?;
    anna.until(r#"all("canned-item").length === 0"#).await?;
    anna.click("canned-close").await?;
    anna.press("composer", "/ord").await?;
    anna.until(r#"shown("canned-menu") && all("canned-option").length === 0"#).await?;
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canned_reply_that_others_change_is_there_the_next_time_it_is_asked_for() -> Result<()> {
    let (server, driver, anna) = house().await?;
    let _ming = Visitor::asks(&server, "Ming", "Hello?").await?;
    anna.click("session").await?;
    let eva = supervisor(&driver, &server, "Eva", WIDE).await?;
    eva.click("canned-open").await?;
    for (index, welcome) in ["Welcome!", "Good day!"].into_iter().enumerate() {
        eva.fill("canned-shortcut", "hi").await?;
        eva.fill("canned-content", welcome).await?;
        eva.click("canned-save").await?;
        eva.until(r#"text("canned-done") === "Saved.""#).await?;
        anna.fill("composer", "/h").await?;
        let offered = r#"$("canned-option")?.querySelector(".last").textContent"#;
        anna.settles(offered, &json!(welcome)).await?;
        if index == 0 {
            eva.click("canned-item").await?;
            eva.until(r#"text("canned-done") === "" && $("canned-content").value === "Welcome!""#)
                .await?;
            anna.fill("composer", "no slash").await?;
            anna.until(r#"!shown("canned-menu")"#).await?;
        }
    }
    eva.click("canned-delete").await?;
    eva.until(r#"all("canned-item").length === 0"#).await?;
    anna.fill("composer", "no slash").await?;
    anna.fill("composer", "/h").await?;
    anna.until(r#"shown("canned-menu") && all("canned-option").length === 0"#).await?;
    anna.is_clean().await?;
    eva.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b95_a_private_note_is_clearly_one_and_never_reaches_the_visitor() -> Result<()> {
    let (server, _driver, anna) = house().await?;
    let mut ming = Visitor::asks(&server, "Ming", "Where is my refund?").await?;
    anna.click("session").await?;
    anna.click("mode-note").await?;
    anna.press("note-input", "unfinished").await?;
    anna.reload().await?;
    anna.settles(r#"$("note-input").value"#, &json!("unfinished")).await?;
    anna.fill("note-input", "Careful: paid twice.").await?;
    anna.click("note-add").await?;
    anna.settles(
        r#"$("note-entry")?.querySelector(".body").textContent"#,
        &json!("Careful: paid twice."),
    )
    .await?;
    anna.settles(
        r#"$("note-entry").querySelector(".sender").textContent"#,
        &json!("Private note · Anna"),
    )
    .await?;
    anna.settles(r#"$("note-input").value"#, &json!("")).await?;
    anna.until(r#"messages().length === 1"#).await?;
    anna.click("mode-reply").await?;
    anna.say("It is on its way.").await?;
    ming.hears("It is on its way.").await?;
    anna.reload().await?;
    anna.until(r#"all("note-entry").length === 1 && messages().length === 2"#).await?;

    let history = ming.socket.call("chat.history", json!({"sessionId": ming.session})).await?;
    let said = history["messages"].as_array().context("messages")?.len();
    ensure!(said == 2, "two messages: {history}");
    let everything = format!("{history}{:?}", ming.socket.take_inbox());
    ensure!(!everything.contains("paid twice"), "the visitor got the note: {everything}");
    let refusal = ming.socket.refused("chat.note.list", json!({"sessionId": ming.session})).await?;
    ensure!(refusal["code"] == "forbidden", "{refusal}");
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_before_is_found_and_read_only() -> Result<()> {
    let (server, _driver, anna) = house().await?;
    let mut ming = Visitor::asks(&server, "Ming", "我要退款，谢谢").await?;
    anna.click("session").await?;
    anna.say("Done.").await?;
    ming.hears("Done.").await?;
    ming.ends().await?;
    anna.until(r#"shown("ended") && !shown("composer")"#).await?;
    anna.reload().await?;
    anna.until(r#"shown("dismiss") && messages().length === 2 && all("session").length === 1"#)
        .await?;
    anna.click("dismiss").await?;
    anna.until(r#"all("session").length === 0"#).await?;

    ming.comes_back("It is me again").await?;
    anna.click("session").await?;
    anna.settles("last().body", &json!("It is me again")).await?;
    anna.click("past-session").await?;
    anna.until(r#"shown("read-only") && !shown("composer") && !shown("transfer")"#).await?;
    anna.settles("messages().map(({ body }) => body)", &json!(["我要退款，谢谢", "Done."])).await?;
    anna.click("dismiss").await?;
    anna.settles("last().body", &json!("It is me again")).await?;
    anna.until(r#"shown("composer") && !shown("read-only")"#).await?;

    find(&anna, "退款", 1).await?;
    find(&anna, "parcel", 0).await?;
    find(&anna, "退款", 1).await?;
    anna.click("found-session").await?;
    anna.settles("messages()[0]?.body", &json!("我要退款，谢谢")).await?;
    anna.reload().await?;
    anna.settles(r#"$("search").value"#, &json!("退款")).await?;
    anna.until(r#"all("found-session").length === 1"#).await?;
    anna.settles("messages()[0]?.body", &json!("我要退款，谢谢")).await?;
    anna.is_clean().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_shows_who_has_room_and_brings_the_note_along() -> Result<()> {
    let (server, driver, anna) = house().await?;
    let mut ming = Visitor::asks(&server, "Ming", "Where is my refund?").await?;
    anna.click("session").await?;
    anna.click("transfer").await?;
    anna.until(r#"shown("transfer-none") && $("transfer-submit").disabled"#).await?;
    anna.click("transfer").await?;
    let bert = agent(&driver, &server, "Bert", WIDE).await?;
    bert.fill("cap", "1").await?;
    bert.click("online").await?;
    bert.settles(r#"text("status")"#, &json!("Online · 0 of 1")).await?;
    anna.click("transfer").await?;
    anna.settles(
        r#"$("transfer-target").selectedOptions[0]?.text"#,
        &json!("Bert – room for 1 of 1"),
    )
    .await?;
    anna.press("transfer-note", "paid twice, be kind").await?;
    anna.click("transfer-submit").await?;
    anna.until(r#"all("session").length === 0 && !shown("composer")"#).await?;
    anna.until(r#"text("news")?.includes("transferred")"#).await?;
    bert.until(r#"$("session")?.dataset.fresh === "true""#).await?;
    bert.click("session").await?;
    bert.settles(r#"text("note")"#, &json!("Note: paid twice, be kind")).await?;
    bert.say("I see it.").await?;
    ming.hears("I see it.").await?;

    let _sofia = Visitor::asks(&server, "Sofia", "Hello?").await?;
    anna.click("session").await?;
    anna.click("transfer").await?;
    anna.settles(r#"$("transfer-target").options[0]?.text"#, &json!("Bert – no room")).await?;
    anna.until(r#"$("transfer-submit").disabled && shown("transfer-none")"#).await?;
    anna.is_clean().await?;
    bert.is_clean().await
}

/// Searches until this many are found: what was just said is findable a moment later.
async fn find(page: &Page, query: &str, count: usize) -> Result<()> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        page.fill("search", query).await?;
        let answered = r#"["1 found", "Nothing found."].includes(text("found-count"))"#;
        page.until(&format!(r#"$("search").value === "{query}" && {answered}"#)).await?;
        let found = page.eval(r#"all("found-session").length"#).await?;
        if found == json!(count) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{query}: {found} found");
        // tidy: the index tells nobody when it is there
        tokio::time::sleep(PAUSE).await;
    }
}
