//! A person with as many connections as may be, whose gateway is killed: they all come back at once (L2).

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::support::{Client, HouseBuilder, Server};

const LIMIT: usize = 10;

/// Opens as many connections as one person may have; one more is closed with 4005.
async fn fill(server: &Server) -> Result<Vec<Client>> {
    let connect = || json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let mut open = Vec::new();
    for number in 1..=LIMIT {
        let connected = Client::connect(server, connect()).await;
        open.push(connected.with_context(|| format!("L2: connection {number} of {LIMIT}"))?.0);
    }
    let mut late = Client::open(server).await?;
    late.refused("chat.connect", connect()).await?;
    ensure!(late.gone().await?.code == Some(4005), "L2");
    Ok(open)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_of_a_killed_gateway_comes_back_at_once() -> Result<()> {
    let mut house = HouseBuilder::of(2, 0).without_limits().start().await?;
    let cut = fill(&house.gateways[0]).await?;
    house.kill_and_restart(0).await?;
    drop(cut);
    // To another one, and to the same one, which has its name and its number of connections again.
    let elsewhere = fill(&house.gateways[1]).await?;
    let again = fill(&house.gateways[0]).await?;
    ensure!((elsewhere.len(), again.len()) == (LIMIT, LIMIT));
    Ok(())
}
