//! Assignments, claims, transfers, requeues and ends racing over three gateways and two drainers.
//!
//! `cargo xtask show race` sets `KEFU_RACE_REQUESTS=100000`.

use std::collections::BTreeSet;
use tokio::time::Instant;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use crate::actors::{Actor, Desk, Scene, supervisor};
use crate::copies::{caps_hold, rows_hold, until_exact, until_served};
use crate::session_id;
use crate::support::{Client, ClusterHouse, HouseBuilder, Server, setting};

const AGENTS: usize = 12;
const CAP: u32 = 3;
const VISITORS: usize = 48;
const SUPERVISORS: usize = 3;
/// How long an agent may take to hear what became of their sessions.
const HEARS_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_requests_leave_loads_caps_sessions_and_copies_right() -> Result<()> {
    let requests = setting("KEFU_RACE_REQUESTS", 2_000);
    let seed = setting("KEFU_SEED", rand::random());
    println!("race: {requests} requests, KEFU_SEED={seed}");
    let house = HouseBuilder::of(3, 2).without_limits().start().await?;
    let begin = Instant::now();
    let agents = run(&house, requests, seed).await?;
    let took = begin.elapsed().as_secs_f64();
    until_served(&house).await?;
    until_exact(&house).await?;
    rows_hold(&house)?;
    caps_hold(&house)?;
    let assigned = "SELECT count(*) FROM cg_chat_assignment WHERE result = 'assigned'";
    let assigned = house.count(assigned)?;
    ensure!(assigned > 0, "nothing was assigned: the test showed nothing");
    println!("race: {took:.1} s, {:.0}/s; {assigned} assignments", requests as f64 / took);
    for (name, agent, desk) in agents {
        hears_everything(&house, &name, agent, desk).await?;
    }
    Ok(())
}

type Agents = Vec<(String, Actor, Desk)>;

/// Makes all requests while the rows are looked at; gives the agents as they are then.
async fn run(house: &ClusterHouse, requests: u64, seed: u64) -> Result<Agents> {
    let mut seeds = StdRng::seed_from_u64(seed);
    let at = |n: usize| -> &Server { &house.gateways[n % house.gateways.len()] };
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    let (mut visitors, mut sessions) = (Vec::new(), Vec::new());
    for number in 0..VISITORS {
        let (client, connected) = Client::visitor(at(number), &format!("user-{number}")).await?;
        visitors.push(client);
        sessions.push(session_id(&connected)?);
    }
    let scene = Scene::new(requests, names.clone(), sessions);
    let (mut serving, mut others) = (JoinSet::new(), JoinSet::new());
    for (number, name) in names.into_iter().enumerate() {
        let (client, _) = Client::agent(at(number), &name, CAP).await?;
        let actor = Actor::new(&scene, client, seeds.random());
        serving.spawn(async move {
            let (actor, desk) = actor.serves(CAP).await?;
            anyhow::Ok((name, actor, desk))
        });
    }
    for (number, client) in visitors.into_iter().enumerate() {
        let token = at(number).user(&format!("user-{number}"));
        let actor = Actor::new(&scene, client, seeds.random());
        others.spawn(actor.visits(number, token));
    }
    for number in 0..SUPERVISORS {
        let client = supervisor(at(number), &format!("supervisor-{number}")).await?;
        others.spawn(Actor::new(&scene, client, seeds.random()).supervises());
    }
    let mut agents = Vec::new();
    let mut rest = Vec::new();
    let mut looks = tokio::time::interval(Duration::from_millis(500));
    while agents.len() < AGENTS {
        tokio::select! {
            Some(agent) = serving.join_next() => agents.push(agent??),
            Some(other) = others.join_next() => rest.push(other??),
            _ = looks.tick() => {
                rows_hold(house)?;
                caps_hold(house)?;
            }
        }
    }
    while let Some(other) = others.join_next().await {
        rest.push(other??);
    }
    println!("race: {:?}", scene.answers());
    Ok(agents)
}

/// What an agent's console shows comes to what the rows say.
async fn hears_everything(
    house: &ClusterHouse,
    name: &str,
    mut agent: Actor,
    mut desk: Desk,
) -> Result<()> {
    let sql = format!("SELECT id FROM cg_chat_session WHERE status = 1 AND admin_id = '{name}'");
    let stored: BTreeSet<String> = house.rows(&sql).concat().into_iter().collect();
    let hearing = async {
        while desk.own != stored {
            let frame = agent.client.next().await?;
            desk.hears(&frame);
        }
        anyhow::Ok(())
    };
    let heard = timeout(HEARS_WITHIN, hearing).await.map_err(anyhow::Error::from);
    heard
        .and_then(|done| done)
        .with_context(|| format!("{name} is shown {:?}, and has {stored:?}", desk.own))
}
