//! What a visitor meets in the widget: a silent server, limits, an input method, keys only, images, old messages.

use anyhow::{Result, ensure};
use serde_json::json;
use tempfile::TempDir;

use super::axe::is_accessible;
use super::driver::Driver;
use super::page::Page;
use super::people::{agent, visitor, wire_agent};
use super::support::ServerBuilder;
use super::talk::picture;

const SIZE: (u32, u32) = (480, 720);
const BODIES: &str = "messages().map(({ body }) => body)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_leaves_the_message_on_screen_with_a_retry_b59() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    ming.say("before").await?;
    ming.last_is("before", "stored").await?;

    server.freeze()?;
    ming.say("are you there?").await?;
    ming.press("composer", "and a draft").await?;
    ming.last_is("are you there?", "sending").await?;
    // More than 10 s: the bubble says so, and offers to look again.
    ming.until(r#"shown("retry") && text("messages").includes("Not sent yet")"#).await?;
    ming.click("retry").await?;
    ming.last_is("are you there?", "sending").await?;
    server.thaw()?;
    ming.last_is("are you there?", "stored").await?;
    ming.settles(BODIES, &json!(["before", "are you there?"])).await?;
    ming.settles(r#"$("composer").value"#, &json!("and a draft")).await?;
    ming.reload().await?;
    ming.settles(BODIES, &json!(["before", "are you there?"])).await?;
    ming.settles(r#"$("composer").value"#, &json!("and a draft")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_told_with_its_time_and_costs_no_message_b79() -> Result<()> {
    let limits = ServerBuilder::default().with_own_secret();
    let limits = limits.set("KEFU__LIMITS__MESSAGE_BURST", 2);
    let limits = limits.set("KEFU__LIMITS__MESSAGES_PER_SECOND", 1);
    let server = limits.set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1).start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    let said = ["one", "two", "three", "four", "five"];
    for text in said {
        ming.say(text).await?;
    }
    ming.press("composer", "a draft").await?;
    ming.until(r#"text("error")?.startsWith("too many at once, trying again in ")"#).await?;
    ming.until(r#"messages().length === 5 && messages().every(({ state }) => state === "stored")"#)
        .await?;
    ming.settles(BODIES, &json!(said)).await?;
    ming.settles("messages().map(({ seq }) => seq)", &json!([1, 2, 3, 4, 5])).await?;
    ming.settles(r#"$("composer").value"#, &json!("a draft")).await?;

    // The second connection within the minute.
    ming.reload().await?;
    ming.until(r#"/trying again in \d+ s/.test(text("error"))"#).await?;
    ming.until(r#"$("connection").dataset.state === "reconnecting""#).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enter_in_an_input_method_sends_nothing_b70() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    ming.click("composer").await?;
    let pinyin = json!({"text": "ni hao", "selectionStart": 6, "selectionEnd": 6});
    ming.devtools("Input.imeSetComposition", pinyin).await?;
    ming.settles(r#"$("composer").value"#, &json!("ni hao")).await?;
    press_enter(&ming, r#"{ keyCode: 229, isComposing: true }"#).await?;
    ming.devtools("Input.insertText", json!({"text": "你好"})).await?;
    ming.settles(r#"$("composer").value"#, &json!("你好")).await?;
    // Safari tells the key only after the composition has ended: no longer composing, but still 229.
    press_enter(&ming, "{ keyCode: 229, isComposing: false }").await?;
    ming.settles(r#"[messages().length, $("composer").value]"#, &json!([0, "你好"])).await?;
    press_enter(&ming, "{ keyCode: 13, shiftKey: true }").await?;
    ming.settles("messages().length", &json!(0)).await?;
    press_enter(&ming, "{ keyCode: 13 }").await?;
    ming.last_is("你好", "stored").await?;
    ming.settles(r#"$("composer").value"#, &json!("")).await
}

async fn press_enter(page: &Page, more: &str) -> Result<()> {
    let press = format!(
        r#"$("composer").dispatchEvent(new KeyboardEvent("keydown",
            {{ key: "Enter", bubbles: true, cancelable: true, composed: true, ...{more} }}))"#
    );
    page.eval(&press).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_alone_are_enough_and_axe_finds_nothing_serious() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent(&driver, &server, "Anna", (1_000, 720)).await?;
    let ming = driver.open(&server.url("/"), SIZE.0, SIZE.1).await?;
    is_accessible(&ming).await?;

    for _ in 0..2 {
        ming.stroke("Tab", 9).await?;
    }
    ming.settles(FOCUS, &json!("launcher")).await?;
    ming.stroke("Enter", 13).await?;
    ming.until(r#"shown("composer")"#).await?;
    ming.settles(FOCUS, &json!("composer")).await?;
    ming.devtools("Input.insertText", json!({"text": "only keys"})).await?;
    ming.stroke("Enter", 13).await?;
    anna.click("session").await?;
    ming.last_is("only keys", "read").await?;
    anna.say("welcome").await?;
    ming.last_is("welcome", "read").await?;
    is_accessible(&ming).await?;
    ming.dark(true).await?;
    is_accessible(&ming).await?;
    ming.dark(false).await?;

    reach(&ming, "end").await?;
    ming.stroke("Enter", 13).await?;
    ming.until(r#"shown("ended")"#).await?;
    reach(&ming, "rate-open").await?;
    ming.stroke("Enter", 13).await?;
    is_accessible(&ming).await?;
    ming.stroke("Escape", 27).await?;
    ming.until(r#"!shown("panel")"#).await?;
    ming.settles(FOCUS, &json!("launcher")).await
}

/// The hook of whatever has the focus.
const FOCUS: &str = r#"(widget.shadowRoot.activeElement ?? document.activeElement).dataset.testid"#;

/// Goes there with the Tab key.
async fn reach(page: &Page, id: &str) -> Result<()> {
    for _ in 0..25 {
        if page.eval(FOCUS).await? == id {
            return Ok(());
        }
        page.stroke("Tab", 9).await?;
    }
    anyhow::bail!("the Tab key does not lead to {id}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_checked_pasted_dropped_and_given_up() -> Result<()> {
    let folder = TempDir::new()?;
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    ming.attach(&picture(folder.path())?).await?;
    ming.settles("[last().image, last().state]", &json!([true, "stored"])).await?;

    give(&ming, "paste", r#"new File([bytes], "pasted.png", { type: "image/png" })"#).await?;
    ming.settles("[messages().length, last().image]", &json!([2, true])).await?;
    give(&ming, "drop", r#"new File([bytes], "dropped.png", { type: "image/png" })"#).await?;
    ming.settles("[messages().length, last().image]", &json!([3, true])).await?;

    give(&ming, "drop", r#"new File(["text"], "notes.txt", { type: "text/plain" })"#).await?;
    ming.settles(r#"text("notice")"#, &json!("only JPEG, PNG and GIF images can be sent")).await?;
    give(&ming, "drop", r#"new File([new Uint8Array(2097153)], "big.png", { type: "image/png" })"#)
        .await?;
    ming.settles(r#"text("notice")"#, &json!("the image is larger than 2 MB")).await?;

    let slow = json!({"offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 20_000});
    ming.devtools("Network.enable", json!({})).await?;
    ming.devtools("Network.emulateNetworkConditions", slow).await?;
    give(
        &ming,
        "drop",
        r#"new File([new Uint8Array(1500000)], "slow.png", { type: "image/png" })"#,
    )
    .await?;
    ming.until(r#"shown("upload")"#).await?;
    ming.click("cancel").await?;
    ming.until(r#"!shown("upload") && !shown("notice") && messages().length === 3"#).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_was_stopped_is_sent_again_without_picking_it_again() -> Result<()> {
    let folder = TempDir::new()?;
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    ming.devtools("Network.enable", json!({})).await?;
    cut(&ming, true).await?;
    ming.attach(&picture(folder.path())?).await?;
    ming.until(r#"shown("upload-retry") && shown("cancel")"#).await?;
    let stopped = json!("the image was not sent; try again in a moment");
    ming.settles(r#"text("notice")"#, &stopped).await?;
    // Tried too early, it is stopped again and stays.
    ming.click("upload-retry").await?;
    ming.until(r#"shown("upload-retry") && shown("notice")"#).await?;
    ming.settles("messages().length", &json!(0)).await?;
    cut(&ming, false).await?;
    ming.click("upload-retry").await?;
    ming.settles("[last().image, last().state]", &json!([true, "stored"])).await?;
    ming.until(r#"messages().length === 1 && !shown("upload") && !shown("notice")"#).await?;

    cut(&ming, true).await?;
    ming.attach(&picture(folder.path())?).await?;
    ming.until(r#"shown("upload-retry")"#).await?;
    ming.click("cancel").await?;
    ming.until(r#"!shown("upload") && !shown("notice") && messages().length === 1"#).await
}

/// Lets no request of the page through, or all.
async fn cut(page: &Page, offline: bool) -> Result<()> {
    let network =
        json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
    page.devtools("Network.emulateNetworkConditions", network).await?;
    Ok(())
}

/// Pastes or drops one file on the composer; `bytes` are those of the image that was sent before.
async fn give(page: &Page, event: &str, file: &str) -> Result<()> {
    let act = format!(
        r#"(async () => {{
            const bytes = await (await fetch($("image").src)).blob();
            const data = new DataTransfer();
            data.items.add({file});
            const init = {{ bubbles: true, composed: true, cancelable: true, clipboardData: data, dataTransfer: data }};
            $("composer").dispatchEvent("{event}" === "paste" ? new ClipboardEvent("paste", init) : new DragEvent("drop", init));
            done(true);
        }})().catch((error) => done(String(error)))"#
    );
    let done = page.run_async(&act).await?;
    ensure!(done == true, "{event}: {done}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_messages_come_on_scroll_and_nothing_jumps() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    let (mut anna, session) = wire_agent(&server, 3).await?;
    for number in 1..=80 {
        anna.say(&session, &format!("k{number}"), &format!("line {number}")).await?;
    }
    ming.settles("last().seq", &json!(80)).await?;
    ming.reload().await?;
    ming.until("messages().length === 50 && last().seq === 80").await?;
    ming.until(r#"$("messages").scrollTop > 500"#).await?;

    // At the upper end, under the day's separator. Measured within the list: the panel may still be
    // moving in.
    let place = r#"$("messages").querySelector("[data-seq='31']").getBoundingClientRect().top
        - $("messages").getBoundingClientRect().top"#;
    ming.run(
        r#"const log = document.querySelector("kefu-widget").shadowRoot.querySelector("[role=log]");
        const top = (element) => element.getBoundingClientRect().top;
        log.scrollTop = 0; window.before = top(log.querySelector("[data-seq='31']")) - top(log)"#,
    )
    .await?;
    ming.until("messages().length === 80").await?;
    // Scrolling goes by whole pixels, lines do not.
    ming.settles(&format!("Math.trunc({place} - window.before)"), &json!(0)).await
}
