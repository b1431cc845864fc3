//! Redis against SQL: every copy is what its row says (A1), and what holds of the rows themselves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use tokio::time::Instant;

use crate::support::{ClusterHouse, until};

/// Everything of which Redis holds a copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Owner by session.
    owners: BTreeMap<String, String>,
    /// Open session by user.
    active: BTreeMap<String, String>,
    /// Load by agent.
    loads: BTreeMap<String, String>,
    /// Waiting sessions in their order.
    line: Vec<String>,
    /// Open sessions.
    open: BTreeSet<String>,
}

impl Copied {
    /// What the rows say.
    fn in_sql(house: &ClusterHouse) -> Self {
        let mut copied = Self::default();
        let open = "SELECT id, user_id, status, admin_id FROM cg_chat_session \
                    WHERE status IN (0, 1) ORDER BY priority DESC, id";
        for row in house.rows(open) {
            copied.open.insert(row[0].clone());
            copied.active.insert(row[1].clone(), row[0].clone());
            if row[2] == "1" {
                copied.owners.insert(row[0].clone(), row[3].clone());
            } else {
                copied.line.push(row[0].clone());
            }
        }
        let loads = house.rows("SELECT admin_id, active_sessions FROM cg_chat_agent");
        copied.loads = loads.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        copied
    }

    /// What Redis says, stray keys included, all at one moment.
    fn in_redis(house: &ClusterHouse) -> Result<Self> {
        let mut copied = Self::default();
        for line in house.redis(&["EVAL", SNAPSHOT, "0"])? {
            let mut parts = line.splitn(3, ' ');
            let (kind, name, value) = (parts.next(), parts.next(), parts.next());
            let (name, value) = (name.unwrap_or_default().to_owned(), value.unwrap_or_default());
            match kind {
                Some("owner") => drop(copied.owners.insert(name, value.to_owned())),
                Some("active") => drop(copied.active.insert(name, value.to_owned())),
                Some("load") => drop(copied.loads.insert(name, value.to_owned())),
                Some("line") => copied.line.push(name.trim_start_matches('0').to_owned()),
                Some("open") => drop(copied.open.insert(name)),
                _ => ensure!(line.is_empty(), "redis-cli: {line}"),
            }
        }
        Ok(copied)
    }
}

/// Every copy, a line each. One script, so that what it sees is of one moment and its time is known.
const SNAPSHOT: &str = "
local lines = {}
local function add(kind, prefix)
    for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
        lines[#lines + 1] = kind .. ' ' .. string.sub(key, #prefix + 1) .. ' ' .. redis.call('GET', key)
    end
end
add('owner', 'cs:session:owner:')
add('active', 'cs:user:active_session:')
add('load', 'cs:agent:load:')
for _, member in ipairs(redis.call('ZRANGE', 'cs:queue:pending', 0, -1)) do
    lines[#lines + 1] = 'line ' .. member
end
for _, member in ipairs(redis.call('SMEMBERS', 'cs:copy:open')) do
    lines[#lines + 1] = 'open ' .. member
end
return lines";

/// Waits until every copy is exact.
pub(crate) async fn until_exact(house: &ClusterHouse) -> Result<()> {
    exact_at(house).await.map(drop)
}

/// Waits until every copy is exact; by when they were.
pub(crate) async fn exact_at(house: &ClusterHouse) -> Result<Instant> {
    let mut at = Instant::now();
    let waited = until("copies equal to SQL", async || {
        // Not there yet after a kill: the next look finds out.
        let Ok(redis) = Copied::in_redis(house) else { return Ok(false) };
        at = Instant::now();
        Ok(redis == Copied::in_sql(house))
    });
    if let Err(error) = waited.await {
        let (sql, redis) = (Copied::in_sql(house), Copied::in_redis(house)?);
        bail!("{error:#}\nSQL: {sql:?}\nRedis: {redis:?}");
    }
    Ok(at)
}

/// What must be true of the rows at any moment: loads are counts, within caps, one open session a user.
const BROKEN: [(&str, &str); 4] = [
    (
        "load is not the count of active sessions",
        "SELECT count(*) FROM cg_chat_agent a WHERE active_sessions <> \
         (SELECT count(*) FROM cg_chat_session s WHERE s.status = 1 AND s.admin_id = a.admin_id)",
    ),
    (
        "an active session's owner is no agent",
        "SELECT count(*) FROM cg_chat_session s WHERE status = 1 AND NOT EXISTS \
         (SELECT 1 FROM cg_chat_agent a WHERE a.admin_id = s.admin_id)",
    ),
    (
        "more sessions than the cap of CC-03",
        "SELECT count(*) FROM cg_chat_agent WHERE active_sessions > 10",
    ),
    (
        "a user with two open sessions (2.2)",
        "SELECT count(*) FROM (SELECT 1 FROM cg_chat_session WHERE status IN (0, 1) \
         GROUP BY user_id HAVING count(*) > 1) AS two",
    ),
];

/// Checks the rows; each query is one snapshot, so it may be asked under load.
pub(crate) fn rows_hold(house: &ClusterHouse) -> Result<()> {
    for (what, sql) in BROKEN {
        let broken = house.count(sql)?;
        ensure!(broken == 0, "{broken} times: {what}");
    }
    Ok(())
}

/// Besides, where no agent lowered a cap: none is above it.
pub(crate) fn caps_hold(house: &ClusterHouse) -> Result<()> {
    let above = "SELECT count(*) FROM cg_chat_agent WHERE active_sessions > max_sessions";
    let above = house.count(above)?;
    ensure!(above == 0, "{above} agents are above their cap");
    Ok(())
}

/// Waits until no visitor waits while an agent who is there has room (Z3).
pub(crate) async fn until_served(house: &ClusterHouse) -> Result<()> {
    let idle = "SELECT count(*) FROM cg_chat_session WHERE status = 0 AND EXISTS (SELECT 1 FROM \
                cg_chat_agent WHERE availability = 'online' AND live AND \
                active_sessions < max_sessions)";
    until("nobody waits while an agent has room", async || Ok(house.count(idle)? == 0)).await
}
