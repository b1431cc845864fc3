//! Processes that stop for longer than their leases, and wake: they write nothing that a newer owner
//! contradicts.
//!
//! `cargo xtask show cluster-freeze` sets `KEFU_FREEZE_SECONDS=90`: longer than the lease of a worker id
//! (60 s, and 10 s in which nobody else may take it), so that another gateway has it by then.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::copies::{rows_hold, until_exact, until_served};
use crate::load::Load;
use crate::session_id;
use crate::support::{Client, ClusterHouse, HouseBuilder, awake_during, setting, until};

const MEANWHILE: u64 = 200;
const PAIRS: usize = 6;

fn short_leases(gateways: usize, drainers: usize) -> HouseBuilder {
    HouseBuilder::of(gateways, drainers)
        .set("KEFU__PRESENCE__TTL_MS", 6_000)
        .set("KEFU__PRESENCE__HEARTBEAT_MS", 1_000)
        .set("KEFU__PRESENCE__AGENT_GRACE_MS", 1_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_woken_gateway_writes_nothing_for_an_agent_who_lost_the_session() -> Result<()> {
    let house = short_leases(3, 2).start().await?;
    let (mut anna, _) = Client::agent(&house.gateways[0], "anna", 5).await?;
    let (mut user, connected) = Client::visitor(&house.gateways[1], "user").await?;
    let session = session_id(&connected)?;
    user.expect("chat.session.assigned").await?;
    anna.expect("chat.session.new").await?;
    anna.say(&session, "a1", "good day").await?;
    user.expect("chat.message.new").await?;

    house.gateways[0].freeze()?;
    let holder = house.holder("liveness").context("a holder")?;
    house.drainers[holder].freeze()?;
    // What anna does now waits in the frozen gateway's socket.
    let late = json!({
        "sessionId": session, "msgType": "text", "content": "late", "clientMsgId": "late",
    });
    anna.send("chat.message.send", late).await?;
    anna.send("chat.session.transfer", json!({"sessionId": session, "targetAdminId": "anna"}))
        .await?;
    anna.send("chat.session.end", json!({"sessionId": session})).await?;
    user.expect_awake("chat.session.requeued").await?;
    let (mut bert, _) = Client::agent(&house.gateways[2], "bert", 5).await?;
    bert.expect("chat.session.new").await?;
    user.expect_where("chat.session.assigned", |p| p["agentInfo"]["adminId"] == "bert").await?;
    bert.say(&session, "b1", "bert here").await?;
    user.expect_where("chat.message.new", |p| p["senderId"] == "bert").await?;
    ensure!(house.holder("liveness") != Some(holder), "the other one took over");

    house.gateways[0].thaw()?;
    house.drainers[holder].thaw()?;
    // Either end of the connection is right; nothing of it may have been done.
    let wakes = async {
        anna.gone().await?;
        until("awake", async || Ok(house.missing(0).await?.is_none())).await
    };
    awake_during(&mut [&mut user, &mut bert], wakes).await?;
    user.say(&session, "q1", "thank you").await?;
    bert.expect_where("chat.message.new", |p| p["content"] == "thank you").await?;
    let owner = format!("SELECT status, admin_id FROM cg_chat_session WHERE id = {session}");
    ensure!(house.rows(&owner) == [["1", "bert"]], "{:?}", house.rows(&owner));
    let late = "SELECT count(*) FROM cg_chat_message WHERE client_msg_id = 'late'";
    ensure!(house.count(late)? == 0, "written for an agent who no longer owned it");
    rows_hold(&house)?;
    until_served(&house).await?;
    until_exact(&house).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_freezes_under_load_wakes_without_harm() -> Result<()> {
    let frozen = Duration::from_secs(setting("KEFU_FREEZE_SECONDS", 5));
    let is_long = frozen > Duration::from_secs(75);
    let mut house = HouseBuilder::of(2, 2).without_limits().start().await?;
    let load = Load::start(&house, PAIRS).await?;
    load.acked(MEANWHILE).await?;
    let old = worker(&house, "gateway-1")?;
    house.gateways[0].freeze()?;
    let begin = Instant::now();
    if is_long {
        let free = format!(
            "SELECT count(*) FROM cg_worker WHERE worker_id = {old} AND \
             expires_at + 10500 < extract(epoch FROM clock_timestamp()) * 1000"
        );
        until("the worker id is free", async || Ok(house.count(&free)? == 1)).await?;
        house.join().await?;
        ensure!(worker(&house, "gateway-5")? == old, "the newcomer has the id of the frozen one");
        load.moved(&house)?;
    }
    // tidy: how long it is frozen is what is tested.
    tokio::time::sleep(frozen.saturating_sub(begin.elapsed())).await;
    println!("freeze: {:.1} s", begin.elapsed().as_secs_f64());
    house.gateways[0].thaw()?;
    load.acked(MEANWHILE).await?;
    until("awake", async || Ok(house.missing(0).await?.is_none())).await?;
    if is_long {
        until("it has another id", async || {
            Ok(worker(&house, "gateway-1").is_ok_and(|new| new != old))
        })
        .await?;
    }
    load.acked(MEANWHILE).await?;
    load.finish(&house).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}

/// The worker id that a node has.
fn worker(house: &ClusterHouse, node: &str) -> Result<u64> {
    house.count(&format!("SELECT worker_id FROM cg_worker WHERE node = '{node}'"))
}
