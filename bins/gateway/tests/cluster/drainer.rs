//! What one process does for all goes on when that process dies.

use anyhow::{Context, Result, ensure};

use crate::copies::{rows_hold, until_exact};
use crate::session_id;
use crate::support::{Client, HouseBuilder, awake_during, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_drainer_takes_over_the_line_and_the_agents_who_died() -> Result<()> {
    let mut house = HouseBuilder::of(3, 2)
        .set("KEFU__PRESENCE__TTL_MS", 6_000)
        .set("KEFU__PRESENCE__HEARTBEAT_MS", 1_000)
        .set("KEFU__PRESENCE__AGENT_GRACE_MS", 1_000)
        .start()
        .await?;
    let (mut anna, _) = Client::agent(&house.gateways[0], "anna", 1).await?;
    let (mut first, connected) = Client::visitor(&house.gateways[1], "first").await?;
    let served = session_id(&connected)?;
    first.expect("chat.session.assigned").await?;
    anna.expect("chat.session.new").await?;
    let (mut second, _) = Client::visitor(&house.gateways[1], "second").await?;
    second.expect("chat.queue.position").await?;

    for task in ["drain_sweep", "liveness"] {
        until("somebody sweeps", async || Ok(house.holder(task).is_some())).await?;
    }
    let holder = house.holder("liveness").context("a holder")?;
    house.drainers[holder].kill()?;
    house.gateways[0].kill()?;
    // Its agent is gone with it: requeued after lease and grace (Z7), by the other drainer.
    let requeued = first.expect_awake("chat.session.requeued");
    let requeued = awake_during(&mut [&mut second], requeued).await?;
    ensure!(requeued["sessionId"] == served.as_str(), "{requeued}");
    let offline = "SELECT count(*) FROM cg_chat_agent WHERE availability = 'offline'";
    ensure!(house.count(offline)? == 1, "set offline with the requeue (Z7)");
    let other = house.holder("liveness").context("a new holder")?;
    ensure!(other != holder, "the dead one holds it");

    let (mut bert, _) = Client::agent(&house.gateways[2], "bert", 1).await?;
    let offered = bert.expect("chat.session.new");
    let offer = awake_during(&mut [&mut first, &mut second], offered).await?;
    ensure!(offer["sessionId"] == served.as_str(), "with the original waiting time (Z7): {offer}");
    first.expect("chat.session.assigned").await?;
    // A cap that nobody announced: only the sweep can see it (Z3).
    house.execute("UPDATE cg_chat_agent SET max_sessions = 2 WHERE admin_id = 'bert'");
    let assigned = second.expect_awake("chat.session.assigned");
    awake_during(&mut [&mut first, &mut bert], assigned).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}
