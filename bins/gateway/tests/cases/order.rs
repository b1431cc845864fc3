//! One order for everybody: positions, not clocks.

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::support::{Client, Server};
use crate::{after, seqs, session_id, text};

/// Sends a pipeline of texts and waits for all answers.
async fn talk(client: &mut Client, session: &str, name: &str, count: usize) -> Result<()> {
    for n in 0..count {
        let content = format!("{name} {n}");
        client.send("chat.message.send", text(session, &format!("{name}-{n}"), &content)).await?;
    }
    for _ in 0..count {
        client.expect("chat.message.server_ack").await?;
    }
    Ok(())
}

/// The whole history, page by page.
async fn everything(client: &mut Client, session: &str) -> Result<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let upto = all.last().map_or(0, |message| message["seq"].as_i64().unwrap_or_default());
        let page = client.call("chat.history", after(session, upto)).await?;
        all.extend(page["messages"].as_array().context("messages")?.iter().cloned());
        if page["hasMore"] == false {
            return Ok(all);
        }
    }
}

fn number(message: &Value, field: &str) -> Result<i64> {
    let value = &message[field];
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    number.with_context(|| format!("{field} of {message}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b54_all_devices_show_one_order_now_and_after_a_reload() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut phone, connected) = Client::visitor(&server, "user").await?;
    let (mut desktop, _) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    tokio::try_join!(
        talk(&mut phone, &session, "phone", 20),
        talk(&mut desktop, &session, "desktop", 20),
        talk(&mut agent, &session, "agent", 20),
    )?;
    let shown = everything(&mut agent, &session).await?;
    ensure!(seqs(&json!(shown)) == (1..=60).collect::<Vec<_>>(), "no gap");
    for pair in shown.windows(2) {
        ensure!(number(&pair[0], "msgId")? < number(&pair[1], "msgId")?, "2.4: {pair:?}");
        ensure!(number(&pair[0], "time")? <= number(&pair[1], "time")?, "2.4: {pair:?}");
    }
    let places = |messages: &[Value]| -> Vec<(Value, Value)> {
        messages.iter().map(|m| (m["seq"].clone(), m["msgId"].clone())).collect()
    };
    let of_users = try_join_all([&mut phone, &mut desktop].map(|c| everything(c, &session)));
    for other in of_users.await? {
        ensure!(places(&other) == places(&shown), "the other side sees the same");
    }
    // What was pushed carries the same places as what is read.
    for client in [&phone, &desktop, &agent] {
        for pushed in client.inbox().filter(|frame| frame["event"] == "chat.message.new") {
            let place = (pushed["payload"]["seq"].clone(), pushed["payload"]["msgId"].clone());
            ensure!(places(&shown).contains(&place), "{pushed}");
        }
    }
    let server = server.kill_and_restart().await?;
    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (mut reloaded, _) = Client::connect(&server, resume).await?;
    ensure!(places(&everything(&mut reloaded, &session).await?) == places(&shown));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b55_a_visitor_whose_clock_is_two_hours_ahead_changes_no_order() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    let now = number(&connected, "serverTime")?;
    let ahead = now + 2 * 3_600_000;
    let mut early = text(&session, "k1", "a question");
    for field in ["time", "clientTime", "createTime", "seq", "msgId"] {
        early[field] = ahead.into();
    }
    let asked = user.call("chat.message.send", early).await?;
    let answered = agent.say(&session, "a2", "its answer").await?;
    ensure!(asked["seq"] == 1 && answered["seq"] == 2, "{asked} {answered}");
    ensure!(number(&asked, "time")? < now + 3_600_000, "the server's clock: {asked}");
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(page["messages"][0]["content"] == "a question", "{page}");
    ensure!(number(&page["messages"][0], "time")? <= number(&page["messages"][1], "time")?);
    Ok(())
}
