//! The widget on somebody else's site: allowed or not, with storage or without, under a strict policy.

use anyhow::{Result, ensure};
use serde_json::json;

use super::driver::Driver;
use super::site::Site;
use super::support::{Client, Server};

const SIZE: (u32, u32) = (900, 720);
/// All that a page can leave behind, as far as it can be seen from it.
const TRACES: &str = r#"indexedDB.databases().then((databases) => done(
    [localStorage.length, sessionStorage.length, document.cookie, databases.map(({ name }) => name)]))"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_an_allowed_site_it_leaves_no_trace_until_opened_and_keeps_to_the_policy_b76_b78()
-> Result<()> {
    let site = Site::start().await?;
    let server = site.allowed().start().await?;
    let (mut agent, _) = Client::agent(&server, "a1", 3).await?;
    let driver = Driver::start().await?;
    let page = driver.open(&site.embeds(&server, &server.user("u1")), SIZE.0, SIZE.1).await?;

    page.until(r#"shown("launcher") && !shown("panel")"#).await?;
    let nothing = json!([0, 0, "", []]);
    ensure!(page.run_async(TRACES).await? == nothing, "a trace before it was opened (B78)");
    agent.expect_none("chat.session.new").await?;

    page.click("launcher").await?;
    page.until(r#"shown("composer")"#).await?;
    page.say("Is it in stock?").await?;
    let message = agent.expect("chat.message.new").await?;
    ensure!(message["content"] == "Is it in stock?");
    let session = message["sessionId"].as_str().unwrap_or_default();
    agent.say(session, "k1", "It is: <b>three</b> of them, see https://shop.test/vase").await?;
    page.settles("last().body", &json!("It is: <b>three</b> of them, see https://shop.test/vase"))
        .await?;
    page.settles(
        r#"all("message").at(-1).querySelector("a").href"#,
        &json!("https://shop.test/vase"),
    )
    .await?;

    let foreign = r#"performance.getEntriesByType("resource").map(({ name }) => new URL(name).origin)
        .filter((origin) => origin !== location.origin && !document.scripts[0].src.startsWith(origin))"#;
    page.settles(foreign, &json!([])).await?;
    ensure!(site.reports().is_empty(), "{:?}", site.reports());

    logging_out_leaves_nothing(&page).await?;
    ensure!(site.reports().is_empty(), "{:?}", site.reports());
    page.run(
        r#"document.body.append(Object.assign(document.createElement("script"), { text: "1" }))"#,
    )
    .await?;
    until_reported(&site, &page).await
}

/// `kefu.reset()`: the socket closes, and storage is as it was.
async fn logging_out_leaves_nothing(page: &super::page::Page) -> Result<()> {
    page.press("composer", "half a thought").await?;
    ensure!(
        page.run_async(TRACES).await? != json!([0, 0, "", []]),
        "nothing was kept that could go"
    );
    page.run_async("kefu.reset().then(done)").await?;
    page.until(r#"!shown("panel") && shown("launcher")"#).await?;
    let left = page.run_async(TRACES).await?;
    ensure!(left == json!([0, 0, "", []]), "left behind: {left}");
    Ok(())
}

/// The report of a breach comes, so that none would have come unseen.
async fn until_reported(site: &Site, page: &super::page::Page) -> Result<()> {
    for _ in 0..200 {
        if !site.reports().is_empty() {
            return Ok(());
        }
        page.eval("1").await?;
    }
    anyhow::bail!("the breach was not reported")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_is_not_allowed_gets_a_readable_refusal_b76() -> Result<()> {
    let site = Site::start().await?;
    let server = Server::start().await?;
    let driver = Driver::start().await?;
    let page = driver.open(&site.embeds(&server, &server.user("u1")), SIZE.0, SIZE.1).await?;
    page.click("launcher").await?;
    page.until(r#"$("connection").dataset.state === "closed""#).await?;
    page.until(r#"text("connection").startsWith("this site may not use this chat")"#).await?;
    page.until(r#"shown("reconnect")"#).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_storage_blocked_the_chat_works_b75() -> Result<()> {
    let site = Site::start().await?;
    let server = site.allowed().start().await?;
    let (mut agent, _) = Client::agent(&server, "a1", 3).await?;
    let driver = Driver::start().await?;
    let blocked = json!({"profile.default_content_setting_values.cookies": 2});
    let url = site.embeds(&server, &server.user("u1"));
    let page = driver.open_with(&url, SIZE, &blocked, "en-US").await?;
    let throws =
        r#"(() => { try { return sessionStorage.length < 0; } catch { return true; } })()"#;
    page.until(throws).await?;

    page.click("launcher").await?;
    page.until(r#"shown("composer")"#).await?;
    page.say("anybody there?").await?;
    let message = agent.expect("chat.message.new").await?;
    agent.say(message["sessionId"].as_str().unwrap_or_default(), "k1", "yes").await?;
    page.last_is("yes", "read").await?;
    page.click("minimize").await?;
    page.click("launcher").await?;
    page.last_is("yes", "read").await?;

    page.reload().await?;
    page.click("launcher").await?;
    page.settles("messages().map(({ body }) => body)", &json!(["anybody there?", "yes"])).await?;
    let complaints = page.complaints().await?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    Ok(())
}
