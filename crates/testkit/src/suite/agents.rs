//! `AgentDirectory`: reads of agents.

use std::time::Duration;

use kefu_assignment::preference;
use kefu_core::{AgentInfo, AssignmentId, Timestamp};
use kefu_presence::{Agent, Availability};
use rand::RngExt;

use crate::build::{self, agent_row, idle_agent_row};
use crate::{Harness, World, seeded};

/// Ids in byte order, which is neither the order of numbers nor that of a dictionary.
const IDS: [&str; 7] = ["B1", "_x", "a-1", "a.1", "a10", "a2", "b1"];

/// Every field comes back as it was written, also after a restart.
pub async fn every_field_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let info = AgentInfo {
        admin_id: build::admin("a1"),
        name: "客服 😀 \"'".into(),
        avatar: Some("https://a.test/x.png".into()),
    };
    let full = Agent {
        info,
        availability: Availability::Online,
        max_sessions: 10,
        active_sessions: 0,
        last_assigned: Some(AssignmentId::new(i64::MAX - 1).unwrap()),
        live: false,
        live_gen: 77,
        gone_since: Some(Timestamp(1_769_558_400_123)),
        version: 99,
    };
    let plain = idle_agent_row("a2", 1);
    world.put_agents(&[full.clone(), plain.clone()]).await;
    let world = world.restarted(&mut harness).await;
    assert_eq!(world.agent_row(&full.info.admin_id).await, full);
    assert_eq!(world.agent_row(&plain.info.admin_id).await, plain);
    assert_eq!(world.stores.agents.find(&build::admin("a3")).await.unwrap(), None);
}

/// Who chose to be online, by id, connected or not.
pub async fn online_agents_are_listed_by_id<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut rows: Vec<_> = IDS.iter().rev().map(|id| agent_row(id, 3)).collect();
    rows[0] = rows[0].vanished(Timestamp(5));
    rows.push(idle_agent_row("zz", 3));
    world.put_agents(&rows).await;
    let online = world.stores.agents.list_online().await.unwrap();
    assert_eq!(names(&online), IDS);
}

/// Who holds a lease, by id, available or not.
pub async fn live_agents_are_listed_by_id<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut rows: Vec<_> = IDS.iter().rev().map(|id| agent_row(id, 3)).collect();
    rows[0] = rows[0].offline();
    rows.push(agent_row("zz", 3).vanished(Timestamp(5)));
    world.put_agents(&rows).await;
    let live = world.stores.agents.list_live().await.unwrap();
    assert_eq!(names(&live), IDS);
}

/// Z1: least load, then unassigned longest with "never" first, then id.
pub async fn eligible_agents_come_in_the_order_of_preference<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let row = |id: &str, load: u32, last: Option<i64>| Agent {
        active_sessions: load,
        last_assigned: last.map(|id| AssignmentId::new(id).unwrap()),
        ..agent_row(id, 5)
    };
    let expected = [
        row("e", 0, None),
        row("z", 0, None),
        row("d", 0, Some(3)),
        row("c", 0, Some(20)),
        row("b", 1, None),
        row("a", 1, Some(100)),
        row("f", 4, Some(1)),
    ];
    let mut shuffled = expected.to_vec();
    shuffled.reverse();
    world.put_agents(&shuffled).await;
    let eligible = world.stores.agents.list_eligible(64).await.unwrap();
    assert_eq!(eligible, expected);
    let first = world.stores.agents.list_eligible(3).await.unwrap();
    assert_eq!(first, expected[..3]);
}

/// Offline, gone and full agents are not candidates.
pub async fn only_eligible_agents_are_candidates<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let rows = [
        agent_row("good", 1),
        agent_row("offline", 1).offline(),
        agent_row("gone", 1).vanished(Timestamp(5)),
        Agent { active_sessions: 1, ..agent_row("full", 1) },
        Agent { active_sessions: 3, ..agent_row("over", 2) },
        idle_agent_row("idle", 1),
    ];
    world.put_agents(&rows).await;
    let eligible = world.stores.agents.list_eligible(64).await.unwrap();
    assert_eq!(names(&eligible), ["good"]);
}

/// Any population is ordered as the pure rule orders it.
pub async fn candidates_agree_with_the_rule<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut random = seeded("candidates_agree_with_the_rule");
    let rows: Vec<_> = (0..60).map(|n| random_agent(n, &mut random)).collect();
    world.put_agents(&rows).await;
    let mut expected: Vec<_> = rows.into_iter().filter(Agent::is_eligible).collect();
    expected.sort_by(preference);
    for limit in [1, 7, 64] {
        let listed = world.stores.agents.list_eligible(limit).await.unwrap();
        let count = expected.len().min(limit as usize);
        assert_eq!(listed, expected[..count], "limit {limit}");
    }
}

fn random_agent(n: i64, random: &mut rand::rngs::StdRng) -> Agent {
    let id = format!("a{}", random.random_range(0..1_000) * 100 + n);
    let mut row = agent_row(&id, random.random_range(1..=4));
    row.active_sessions = random.random_range(0..=row.max_sessions);
    row.last_assigned = random
        .random_bool(0.7)
        .then(|| AssignmentId::new(random.random_range(1..1_000) * 100 + n).unwrap());
    if random.random_bool(0.2) {
        row = row.offline();
    }
    if random.random_bool(0.2) {
        row = row.vanished(Timestamp(9));
    }
    row
}

/// Z7: gone long enough, and still with something to take away; by id.
pub async fn gone_agents_are_listed_by_id<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let now = world.context().now;
    let long_ago = now.before(Duration::from_secs(200));
    let lately = now.before(Duration::from_secs(10));
    let busy = world.agent("busy", 1).await;
    let session = world.open("u1", 0).await;
    world.claim(&busy, session.id).await.unwrap();
    let busy = world.agent_row(&busy).await;
    world
        .put_agents(&[
            agent_row("zoe", 1).vanished(long_ago),
            agent_row("adam", 1).vanished(long_ago),
            agent_row("lately", 1).vanished(lately),
            agent_row("here", 1),
            agent_row("idle", 1).vanished(long_ago).offline(),
            busy.vanished(long_ago).offline(),
            idle_agent_row("never", 1),
        ])
        .await;
    let gone = world.stores.agents.list_gone(now.before(Duration::from_secs(120))).await.unwrap();
    assert_eq!(names(&gone), ["adam", "busy", "zoe"]);
}

/// A1: pages over everybody, each agent once, by id.
pub async fn all_agents_come_in_pages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let rows: Vec<_> = IDS.iter().rev().map(|id| idle_agent_row(id, 3)).collect();
    world.put_agents(&rows).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.stores.agents.list_after(after.as_ref(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 3);
        after = Some(last.info.admin_id.clone());
        seen.extend(page);
    }
    assert_eq!(names(&seen), IDS);
}

fn names(agents: &[Agent]) -> Vec<&str> {
    agents.iter().map(|agent| agent.info.admin_id.as_str()).collect()
}
