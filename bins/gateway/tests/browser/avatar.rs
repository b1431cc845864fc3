//! Pictures of people: shown where the host page's policy has room for them, else their initial.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::driver::Driver;
use super::site::Site;
use super::support::{Client, Server};

/// What stands for the agent: the letter, or the width of the picture that has come.
const FACE: &str = r#"[text("avatar"), $("avatar")?.querySelector("img")?.naturalWidth > 0]"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_picture_that_cannot_be_shown_is_their_initial_and_breaches_no_policy()
-> Result<()> {
    let site = Site::start().await?;
    let server = site.allowed().start().await?;
    let driver = Driver::start().await?;
    let mut anna = with_picture(&server, "anna", "http://pictures.test/anna.png").await?;
    let page = driver.open(&site.embeds(&server, &server.user("u1")), 900, 720).await?;
    page.click("launcher").await?;
    let session = anna.expect("chat.session.new").await?["sessionId"].clone();
    page.until(r#"text("agent-name")?.includes("anna")"#).await?;
    page.settles(FACE, &json!(["A", false])).await?;

    let mut bert = with_picture(&server, "bert", &server.url("/favicon.svg")).await?;
    hand_over(&mut anna, &session, "bert").await?;
    page.until(r#"text("agent-name")?.includes("bert")"#).await?;
    page.settles(FACE, &json!(["", true])).await?;

    let _carl = with_picture(&server, "carl", &server.url("/nothing.png")).await?;
    hand_over(&mut bert, &session, "carl").await?;
    page.until(r#"text("agent-name")?.includes("carl")"#).await?;
    // The answer is there: nothing is to be waited for any more.
    page.until(r#"performance.getEntriesByName($("launcher") && document.scripts[0].src.replace("widget.js", "nothing.png")).length === 1"#)
        .await?;
    page.settles(FACE, &json!(["C", false])).await?;
    ensure!(site.reports().is_empty(), "{:?}", site.reports());
    let asked = page.eval(r#"performance.getEntriesByType("resource").map(({ name }) => name)"#);
    let asked = asked.await?.to_string();
    ensure!(asked.contains("favicon.svg") && !asked.contains("pictures.test"), "{asked}");
    Ok(())
}

/// An agent who is online and whose token names a picture.
async fn with_picture(server: &Server, sub: &str, avatar: &str) -> Result<Client> {
    let token = server.signed(json!({"sub": sub, "role": "agent", "name": sub, "avatar": avatar}));
    let (mut agent, _) = Client::connect(server, json!({"token": token})).await?;
    agent.call("chat.agent.online", json!({"maxSessions": 1})).await?;
    Ok(agent)
}

async fn hand_over(from: &mut Client, session: &Value, to: &str) -> Result<()> {
    let transfer = json!({"sessionId": session, "targetAdminId": to});
    from.call("chat.session.transfer", transfer).await.context("the transfer")?;
    Ok(())
}
