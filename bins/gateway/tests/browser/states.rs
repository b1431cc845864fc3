//! The widget before anybody serves, for everybody: axe-core's rules in light and dark.

use anyhow::{Context, Result};

use super::axe::is_accessible;
use super::driver::Driver;
use super::page::Page;
use super::people::{visitor, wire_agent};
use super::support::ServerBuilder;

const SIZE: (u32, u32) = (480, 720);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_serious_while_waiting_and_leaving_a_message() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let sofia = visitor(&driver, &server, "Sofia", SIZE).await?;
    sofia.until(r#"shown("offline") && !shown("waiting")"#).await?;
    sofia.say("Please call me back").await?;
    sofia.last_is("Please call me back", "stored").await?;
    in_both(&sofia).await.context("leaving a message")?;

    let (_anna, _) = wire_agent(&server, 1).await?;
    sofia.until(r#"shown("agent-name") && !shown("offline")"#).await?;
    let ming = visitor(&driver, &server, "Ming", SIZE).await?;
    ming.until(r#"shown("waiting") && $("waiting").dataset.position === "1""#).await?;
    ming.say("Is the vase in stock?").await?;
    ming.last_is("Is the vase in stock?", "stored").await?;
    in_both(&ming).await.context("waiting")
}

/// Light and dark, once nothing moves any more.
async fn in_both(page: &Page) -> Result<()> {
    for dark in [false, true] {
        page.dark(dark).await?;
        page.until("roots.every((root) => root.getAnimations().length === 0)").await?;
        is_accessible(page).await.context(if dark { "dark" } else { "light" })?;
    }
    Ok(())
}
