//! Heartbeats in real time (PBT 2.9, P1): a sign of life resets the time of its connection, silence
//! ends it with 4003, and an agent whose connection is gone is listed as offline.
//!
//! The suite runs it with a `presence.ttl_ms` of 6 s and wide margins; `cargo xtask show heartbeat` sets
//! `KEFU_HEARTBEAT`, which means 60 s: there at 59, gone at 61.

#![expect(clippy::print_stdout, reason = "what a demonstration prints is its result")]

mod support;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{Client, PATIENCE, Server, ServerBuilder};
use tokio::time::{Duration, Instant, sleep, sleep_until, timeout};

/// The times of one run.
#[derive(Debug, Clone, Copy)]
struct Times {
    ttl: Duration,
    /// How long before the end of its time a connection is looked at.
    before: Duration,
    /// By how much the end may be late.
    late: Duration,
}

impl Times {
    fn of_this_run() -> Self {
        let seconds = Duration::from_secs;
        match std::env::var_os("KEFU_HEARTBEAT") {
            Some(_) => Self { ttl: seconds(60), before: seconds(1), late: seconds(1) },
            None => Self { ttl: seconds(6), before: Duration::from_millis(2_500), late: PATIENCE },
        }
    }

    /// That many sixtieths of the time to live.
    fn of_60(self, parts: u32) -> Duration {
        self.ttl * parts / 60
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_resets_the_time_and_silence_ends_it() -> Result<()> {
    let times = Times::of_this_run();
    let server = ServerBuilder::default()
        .set("KEFU__PRESENCE__TTL_MS", times.ttl.as_millis())
        .set("KEFU__PRESENCE__HEARTBEAT_MS", times.ttl.as_millis() / 2)
        .start()
        .await?;
    tokio::try_join!(
        stays(&server, times, "early", times.of_60(19)),
        stays(&server, times, "punctual", times.of_60(29)),
        goes(&server, times),
    )?;
    Ok(())
}

/// Connects, gives one sign of life after `pause`, and is there until just before its time is over.
/// Nothing is read meanwhile, since reading a ping would answer it.
async fn stays(server: &Server, times: Times, name: &str, pause: Duration) -> Result<()> {
    let (mut agent, _) = Client::agent(server, name, 1).await?;
    sleep_until(Instant::now() + pause).await;
    let heartbeat = Instant::now();
    agent.call("chat.ping", json!({})).await?;
    sleep_until(heartbeat + times.ttl - times.before).await;
    let status = listed(&mut supervisor(server).await?, name).await?;
    let silent = heartbeat.elapsed();
    ensure!(status == "online", "{name} is {status} {silent:?} after the heartbeat");
    agent.call("chat.ping", json!({})).await.context("the connection lives")?;
    println!("heartbeat: {name} is there {silent:.1?} after the heartbeat");
    Ok(())
}

/// Connects, gives one sign of life, and is gone when its time is over, not before.
async fn goes(server: &Server, times: Times) -> Result<()> {
    let (mut agent, _) = Client::agent(server, "silent", 1).await?;
    sleep_until(Instant::now() + times.of_60(29)).await;
    agent.call("chat.ping", json!({})).await?;
    let heartbeat = Instant::now();
    sleep_until(heartbeat + times.of_60(61)).await;
    let closed = timeout(times.late, agent.gone()).await.context("the connection is open")??;
    ensure!(closed.code == Some(4003), "it ends with {closed:?}");
    // Behind the close the agent's row is still to be written.
    let mut supervisor = supervisor(server).await?;
    let offline = async {
        while listed(&mut supervisor, "silent").await? != "offline" {
            // tidy: the list of agents can only be asked for again; nothing announces the row.
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(times.late, offline).await.context("still listed as online")??;
    println!("heartbeat: silent is gone {:.1?} after the heartbeat", heartbeat.elapsed());
    Ok(())
}

async fn supervisor(server: &Server) -> Result<Client> {
    Ok(Client::connect(server, json!({"token": server.supervisor("watch")})).await?.0)
}

/// What a supervisor sees of an agent.
async fn listed(supervisor: &mut Client, name: &str) -> Result<Value> {
    let list = supervisor.call("chat.agent.list", json!({})).await?;
    let agents = list["agents"].as_array().context("agents")?;
    let agent = agents.iter().find(|agent| agent["adminId"] == name).context("listed")?;
    Ok(agent["status"].clone())
}
