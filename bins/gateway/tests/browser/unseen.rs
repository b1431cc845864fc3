//! What comes while the visitor does not look: the launcher counts it and, only when wanted, a tone tells it.

use anyhow::Result;
use serde_json::json;

use super::driver::Driver;
use super::people::{visitor, wire_agent};
use super::support::ServerBuilder;

/// Counts tones instead of playing them.
const COUNT_TONES: &str = r#"(() => {
    window.tones = 0;
    window.AudioContext = class {
        createOscillator() { return { connect() {}, start() { window.tones++; }, stop() {} }; }
        close() {}
    };
    return true;
})()"#;
/// Puts the page behind other windows, or in front of them again.
const BEHIND: &str = r#"(() => {
    window.behind = !window.behind;
    Object.defineProperty(document, "visibilityState", { get: () => (window.behind ? "hidden" : "visible"), configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    return true;
})()"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_launcher_counts_what_came_and_a_tone_tells_it_only_when_wanted() -> Result<()> {
    let server = ServerBuilder::default().with_own_secret().start().await?;
    let driver = Driver::start().await?;
    let ming = visitor(&driver, &server, "Ming", (480, 720)).await?;
    let (mut anna, session) = wire_agent(&server, 1).await?;
    ming.until(COUNT_TONES).await?;
    ming.settles(r#"$("sound").ariaPressed"#, &json!("false")).await?;
    ming.until(r#"!shown("badge")"#).await?;

    ming.click("minimize").await?;
    anna.say(&session, "1", "one").await?;
    ming.settles(r#"text("badge")"#, &json!("1")).await?;
    anna.say(&session, "2", "two").await?;
    ming.settles(r#"text("badge")"#, &json!("2")).await?;
    ming.settles(r#"$("launcher").ariaLabel"#, &json!("Open chat, 2 unread")).await?;
    ming.settles("window.tones", &json!(0)).await?;
    ming.click("launcher").await?;
    ming.last_is("two", "read").await?;
    ming.until(r#"!shown("badge")"#).await?;

    // Whoever looks needs no tone.
    ming.click("sound").await?;
    ming.settles(r#"$("sound").ariaPressed"#, &json!("true")).await?;
    anna.say(&session, "3", "three").await?;
    ming.last_is("three", "read").await?;
    ming.settles("window.tones", &json!(0)).await?;
    ming.click("minimize").await?;
    ming.settles(r#"$("launcher").ariaLabel"#, &json!("Open chat")).await?;
    anna.say(&session, "4", "four").await?;
    ming.settles(r#"[text("badge"), window.tones]"#, &json!(["1", 1])).await?;

    // The wish and the count outlive a reload.
    ming.reload().await?;
    ming.until(COUNT_TONES).await?;
    ming.settles(r#"text("badge")"#, &json!("1")).await?;
    anna.say(&session, "5", "five").await?;
    ming.settles(r#"[text("badge"), window.tones]"#, &json!(["2", 1])).await?;
    ming.click("launcher").await?;
    ming.last_is("five", "read").await?;
    ming.settles(r#"$("sound").ariaPressed"#, &json!("true")).await?;

    // Open, but behind other windows.
    ming.until(BEHIND).await?;
    anna.say(&session, "6", "six").await?;
    ming.last_is("six", "delivered").await?;
    ming.settles("window.tones", &json!(2)).await?;
    ming.until(BEHIND).await?;
    ming.last_is("six", "read").await?;

    ming.click("sound").await?;
    ming.settles(r#"$("sound").ariaPressed"#, &json!("false")).await?;
    ming.click("minimize").await?;
    anna.say(&session, "7", "seven").await?;
    ming.settles(r#"[text("badge"), window.tones]"#, &json!(["1", 2])).await?;
    ming.is_clean().await
}
