//! A house without demo identities: the console asks for a token, and shows what tokens say of visitors.

use anyhow::Result;
use serde_json::json;

use super::driver::Driver;
use super::support::{Client, ServerBuilder};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_signs_in_and_balances_order_the_line_and_show() -> Result<()> {
    let server = ServerBuilder::default().start().await?;
    let driver = Driver::start().await?;
    let anna = driver.open(&server.url("/console"), 1_400, 860).await?;
    anna.press("name", "Anna").await?;
    anna.click("login").await?;
    anna.until(r#"shown("token") && !shown("name")"#).await?;
    anna.press("token", "nonsense").await?;
    anna.click("login").await?;
    anna.until(r#"text("error")?.includes("not a token")"#).await?;
    // A visitor is nobody who works here.
    anna.fill("token", &server.user("v-1")).await?;
    anna.click("login").await?;
    anna.until(r#"text("error")?.includes("not a token")"#).await?;
    anna.fill("token", &server.agent("anna")).await?;
    anna.click("login").await?;
    anna.until(r#"$("connection")?.dataset.state === "ready""#).await?;
    anna.fill("cap", "1").await?;
    anna.click("online").await?;
    anna.settles(r#"text("status")"#, &json!("Online · 0 of 1")).await?;

    let (_first, _) = Client::visitor(&server, "first").await?;
    anna.until(r#"all("session").length === 1"#).await?;
    let (_poor, _) = Client::visitor(&server, "poor").await?;
    let (_rich, _) = Client::rich_visitor(&server, "rich", 1_234_500).await?;
    anna.until(r#"all("line-entry").length === 2"#).await?;
    anna.until(r#"all("line-entry")[0].textContent.includes("12,345.00")"#).await?;
    anna.fill("cap", "3").await?;
    anna.click("online").await?;
    anna.until(r#"all("session").length === 3 && all("line-entry").length === 0"#).await?;
    anna.click_one("session", "rich").await?;
    anna.settles(r#"text("fact-balance")"#, &json!("12,345.00")).await?;
    anna.settles(r#"text("fact-user")"#, &json!("rich")).await?;

    // Signing out gives the sessions back, so it asks, and leaves nothing of this person in the tab.
    anna.click("sign-out").await?;
    anna.until(r#"text("news")?.includes("(3)")"#).await?;
    anna.click("sign-out").await?;
    anna.until(r#"shown("login") && document.title === "Agent console""#).await?;
    let kept = r#"Object.keys(sessionStorage).filter((key) => key.startsWith("kefu."))"#;
    anna.settles(kept, &json!([])).await?;
    anna.complaints().await.map(drop)
}
