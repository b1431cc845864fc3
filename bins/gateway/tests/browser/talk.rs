//! The main job: a visitor asks, is answered by one agent and then by another, ends and rates.

use std::path::{Path, PathBuf};

use anyhow::Result;
use image::{Rgb, RgbImage};
use serde_json::json;
use tempfile::TempDir;

use super::driver::Driver;
use super::page::Page;
use super::people::{CONSOLE, VISITOR, agent, visitor};
use super::support::{HouseBuilder, Server, ServerBuilder};

const VISITOR_SIZE: (u32, u32) = (420, 720);
const CONSOLE_SIZE: (u32, u32) = (1_200, 800);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_talks_to_two_agents_and_rates() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    talk_between(&server, &server).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_on_one_gateway_talks_to_two_agents_on_another_and_rates() -> Result<()> {
    let house = HouseBuilder::of(2, 1).set("KEFU__DEMO__ENABLED", "true").start().await?;
    talk_between(&house.gateways[0], &house.gateways[1]).await
}

/// The whole conversation, the visitor's page from one server and the consoles from the other.
async fn talk_between(page_from: &Server, console_from: &Server) -> Result<()> {
    let folder = TempDir::new()?;
    let driver = Driver::start().await?;

    let ming = visitor(&driver, page_from, "Ming", VISITOR_SIZE).await?;
    leave_a_message(&ming).await?;
    let anna = agent(&driver, console_from, "Anna", CONSOLE_SIZE).await?;
    be_assigned(&ming, &anna).await?;
    talk(&ming, &anna).await?;
    show_typing(&ming, &anna).await?;
    show_typing(&anna, &ming).await?;
    send_an_image(&ming, &anna, &picture(folder.path())?).await?;
    reload(&ming, VISITOR).await?;
    reload(&anna, CONSOLE).await?;
    ming.say("still there?").await?;
    anna.last_is("still there?", "read").await?;
    anna.say("yes").await?;
    anna.last_is("yes", "read").await?;

    let bert = agent(&driver, console_from, "Bert", CONSOLE_SIZE).await?;
    transfer(&anna, "Bert", "knows refunds").await?;
    take_over(&ming, &anna, &bert).await?;
    reload(&bert, CONSOLE).await?;
    end_and_rate(&ming, &bert).await?;

    for page in [&ming, &anna, &bert] {
        page.is_clean().await?;
    }
    Ok(())
}

/// 2.7: nobody is online, and what the visitor writes is kept.
async fn leave_a_message(visitor: &Page) -> Result<()> {
    visitor.until(r#"shown("offline") && !shown("agent-name") && !shown("waiting")"#).await?;
    visitor.say("Is the blue one in stock?").await?;
    visitor.last_is("Is the blue one in stock?", "stored").await
}

/// The message is delivered when it has reached the agent's browser, and read when it was on screen.
async fn be_assigned(visitor: &Page, agent: &Page) -> Result<()> {
    visitor.settles(r#"text("agent-name")"#, &json!("You are talking to Anna")).await?;
    visitor.until(r#"!shown("offline")"#).await?;
    agent.until(r#"$("session")?.dataset.unread === "1""#).await?;
    agent.settles(r#"text("status")"#, &json!("Online · 1 of 10")).await?;
    visitor.last_is("Is the blue one in stock?", "delivered").await?;
    agent.click("session").await?;
    agent.settles(r#"text("visitor")"#, &json!("Ming")).await?;
    agent.until(r#"$("session").dataset.unread === "0""#).await?;
    visitor.last_is("Is the blue one in stock?", "read").await
}

async fn talk(visitor: &Page, agent: &Page) -> Result<()> {
    agent.say("Yes, three of them.").await?;
    visitor.last_is("Yes, three of them.", "read").await?;
    agent.last_is("Yes, three of them.", "read").await?;
    visitor.say("<b>Great</b>").await?;
    visitor.last_is("<b>Great</b>", "read").await?;
    agent.last_is("<b>Great</b>", "read").await
}

/// Typing shows while it goes on, and ends with the message (P3).
async fn show_typing(writer: &Page, reader: &Page) -> Result<()> {
    reader.watch("typing").await?;
    writer.press("composer", "one moment").await?;
    reader.was_seen().await?;
    writer.click("send").await?;
    reader.last_is("one moment", "read").await?;
    reader.until(r#"!shown("typing")"#).await?;
    writer.last_is("one moment", "read").await
}

async fn send_an_image(from: &Page, to: &Page, file: &Path) -> Result<()> {
    from.attach(file).await?;
    for page in [from, to] {
        page.settles("[last().image, last().state]", &json!([true, "read"])).await?;
    }
    from.until(r#"!shown("notice")"#).await
}

/// A reload in mid-chat changes nothing of what is on screen (Z7).
async fn reload(page: &Page, everything: &str) -> Result<()> {
    let before = page.eval(everything).await?;
    page.reload().await?;
    page.settles(everything, &before).await
}

async fn transfer(from: &Page, to: &str, note: &str) -> Result<()> {
    from.click("transfer").await?;
    from.choose("transfer-target", to).await?;
    from.press("transfer-note", note).await?;
    from.click("transfer-submit").await
}

/// Z5: the colleague has the note and everything said so far, the visitor hears who it is now, and the
/// first agent has nothing left.
async fn take_over(visitor: &Page, first: &Page, second: &Page) -> Result<()> {
    let said = "messages().map(({ msgId, body }) => [msgId, body])";
    let before = visitor.eval(said).await?;
    first.until(r#"!$("session") && !shown("visitor") && !shown("composer")"#).await?;
    first.settles(r#"text("status")"#, &json!("Online · 0 of 10")).await?;
    visitor.settles(r#"text("agent-name")"#, &json!("You are talking to Bert")).await?;
    second.click("session").await?;
    second.settles(r#"text("note")"#, &json!("Note: knows refunds")).await?;
    second.settles(said, &before).await?;
    second.say("Bert here, I take care of it.").await?;
    visitor.last_is("Bert here, I take care of it.", "read").await?;
    second.last_is("Bert here, I take care of it.", "read").await
}

/// The visitor ends it and rates when they want to, never asked (CC-21); it stays so over a reload.
async fn end_and_rate(visitor: &Page, agent: &Page) -> Result<()> {
    visitor.click("end").await?;
    visitor.until(r#"shown("ended") && !shown("composer") && !shown("rate-submit")"#).await?;
    agent.until(r#"shown("ended") && !shown("composer") && !shown("transfer")"#).await?;
    agent.settles(r#"text("status")"#, &json!("Online · 0 of 10")).await?;
    visitor.click("rate-open").await?;
    visitor.click("rate-5").await?;
    visitor.press("rate-comment", "quick and friendly").await?;
    visitor.click("rate-submit").await?;
    visitor.until(r#"shown("rated") && $("rated").dataset.rating === "5""#).await?;
    agent.settles(r#"text("rating-comment")"#, &json!("quick and friendly")).await?;
    reload(visitor, VISITOR).await?;
    visitor.until(r#"shown("ended") && shown("rated") && $("rate-5").checked"#).await?;
    agent.click("dismiss").await?;
    agent.until(r#"!$("session") && !shown("visitor")"#).await
}

/// A PNG of a blue vase on a warm ground.
pub(crate) fn picture(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("vase.png");
    let vase = RgbImage::from_fn(360, 240, |x, y| {
        let (x, y) = (f64::from(x) - 180.0, f64::from(y));
        let half_width = 26.0 + 34.0 * ((y - 60.0) / 50.0).sin().max(-0.4);
        let inside = (50.0..200.0).contains(&y) && x.abs() < half_width;
        let shade = (x + half_width) / (2.0 * half_width);
        match inside {
            true => Rgb([40.0, 90.0 + 60.0 * shade, 150.0 + 90.0 * shade].map(|value| value as u8)),
            false if y > 190.0 => Rgb([206, 178, 140]),
            false => Rgb([244, 232 - (y / 12.0) as u8, 210]),
        }
    });
    vase.save(&file)?;
    Ok(file)
}
