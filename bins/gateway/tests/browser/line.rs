//! The waiting line, in windows as narrow as a small phone.

use anyhow::Result;
use serde_json::json;

use super::driver::Driver;
use super::page::Page;
use super::people::{agent, visitor, wire_visitor};
use super::support::{Server, ServerBuilder};

const NARROW: (u32, u32) = (320, 640);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_agent_leaves_the_next_visitor_in_line_at_320_pixels() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let anna = agent_for_one(&driver, &server).await?;
    let (_first, _) = wire_visitor(&server, "First").await?;
    anna.settles(r#"text("status")"#, &json!("Online · 1 of 1")).await?;
    fits(&anna).await?;

    let ming = visitor(&driver, &server, "Ming", NARROW).await?;
    ming.until(r#"$("waiting").dataset.position === "1" && shown("waiting")"#).await?;
    fits(&ming).await?;
    anna.until(
        r#"$("line").dataset.total === "1" && $("line-entry").textContent.includes("Ming")"#,
    )
    .await?;
    fits(&anna).await?;
    anna.fill("cap", "2").await?;
    anna.click("online").await?;
    ming.settles(r#"text("agent-name")"#, &json!("You are talking to Anna")).await?;
    anna.until(r#"$("line").dataset.total === "0" && all("session").length === 2"#).await?;

    anna.eval(r#"all("session").at(-1).click()"#).await?;
    let long = format!("https://example.test/{}", "a".repeat(200));
    ming.say(&long).await?;
    ming.last_is(&long, "read").await?;
    anna.click("details").await?;
    anna.click("transfer").await?;
    ming.click("rate-open").await?;
    for page in [&ming, &anna] {
        fits(page).await?;
        page.is_clean().await?;
    }
    Ok(())
}

async fn agent_for_one(driver: &Driver, server: &Server) -> Result<Page> {
    let anna = agent(driver, server, "Anna", NARROW).await?;
    anna.fill("cap", "1").await?;
    anna.click("online").await?;
    anna.settles(r#"text("status")"#, &json!("Online · 0 of 1")).await?;
    Ok(anna)
}

/// Nothing is wider than the window.
async fn fits(page: &Page) -> Result<()> {
    page.until("innerWidth === 320").await?;
    let root = "document.documentElement";
    page.until(&format!("{root}.scrollWidth <= {root}.clientWidth")).await
}
