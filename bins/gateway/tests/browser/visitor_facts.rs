//! What the agent learns of a visitor: the page they are on, who they are, and that they matter.

use anyhow::Result;
use serde_json::json;

use super::driver::Driver;
use super::site::Site;

const WIDE: (u32, u32) = (1_400, 860);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_shows_the_visitors_page_as_it_changes_and_the_vip_mark() -> Result<()> {
    let site = Site::start().await?;
    let server = site.allowed().start().await?;
    let driver = Driver::start().await?;
    let console = server.url(&format!("/console#token={}", server.agent("anna")));
    let anna = driver.open(&console, WIDE.0, WIDE.1).await?;
    anna.click("online").await?;
    anna.until(r#"$("status").dataset.status === "online""#).await?;

    let claims = json!({"sub": "u1", "role": "user", "name": "Ming", "vip": true, "balance": 99_00,
        "avatar": server.url("/favicon.svg")});
    let ming = driver.open(&site.embeds(&server, &server.signed(claims)), 900, 720).await?;
    ming.click("launcher").await?;
    ming.until(r#"shown("composer")"#).await?;
    anna.settles(r#"$("session")?.querySelector("[data-tag=vip]")?.textContent"#, &json!("VIP"))
        .await?;
    anna.click("session").await?;
    anna.settles(r#"[text("visitor-name"), text("vip")]"#, &json!(["Ming", "VIP"])).await?;
    anna.settles(r#"[text("fact-balance"), text("fact-source")]"#, &json!(["99.00", "shop"]))
        .await?;
    anna.until(r#"$("avatar").querySelector("img")?.naturalWidth > 0"#).await?;
    let shown =
        r#"[text("fact-page"), $("fact-page")?.querySelector("a")?.href, text("fact-language")]"#;
    anna.settles(shown, &json!(["Shop", site.url(), "en-US"])).await?;

    // A page that changes without a new document.
    ming.run(r#"document.title = "Vases"; history.pushState(null, "", "/vases?colour=blue")"#)
        .await?;
    let vases = json!(["Vases", format!("{}vases?colour=blue", site.url()), "en-US"]);
    anna.settles(shown, &vases).await?;
    anna.reload().await?;
    anna.settles(shown, &vases).await?;

    // Somebody who is nobody special, and whose picture does not come.
    let claims = json!({"sub": "u2", "role": "user", "name": "Sofia",
        "avatar": server.url("/nothing.png")});
    let sofia = driver.open(&site.embeds(&server, &server.signed(claims)), 900, 720).await?;
    sofia.click("launcher").await?;
    anna.until(r#"all("session").length === 2"#).await?;
    anna.click_one("session", "Sofia").await?;
    anna.settles(r#"text("visitor-name")"#, &json!("Sofia")).await?;
    anna.settles(r#"[shown("vip"), text("avatar")]"#, &json!([false, "S"])).await?;
    anna.settles(
        r#"all("session").filter((row) => row.querySelector("[data-tag=vip]")).length"#,
        &json!(1),
    )
    .await
}
