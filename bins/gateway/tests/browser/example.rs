//! The examples of the repository do what they say.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::support::{Client, Server};

/// Ended when dropped.
struct Bot(Child);

impl Drop for Bot {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The client library over a real socket in Node, as an agent that answers by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bot_serves_visitors() -> Result<()> {
    let server = Server::start().await?;
    let bot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bot.mjs");
    let started = Command::new("node")
        // Built in from Node 22 on, where this changes nothing.
        .arg("--experimental-websocket")
        .arg(bot)
        .env("KEFU_URL", server.url(""))
        .env("KEFU_TOKEN", server.agent("bot"))
        .stdin(Stdio::null())
        .spawn();
    let _bot = Bot(started.context("node is missing: install the Debian package `nodejs`")?);
    for name in ["u1", "u2"] {
        let (mut visitor, connected) = Client::visitor(&server, name).await?;
        let session = connected["sessionId"].as_str().context("a session")?;
        visitor.say(session, "k1", "hello").await?;
        visitor.say(session, "k2", "are you a bot?").await?;
        for question in ["hello", "are you a bot?"] {
            let answer = visitor.expect("chat.message.new").await?;
            ensure!(answer["senderType"] == "agent", "{answer}");
            ensure!(
                answer["content"].as_str().is_some_and(|text| text.contains(question)),
                "{answer}"
            );
        }
    }
    Ok(())
}
