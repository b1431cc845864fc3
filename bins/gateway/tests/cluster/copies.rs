//! Redis against SQL: every copy is what its row says (A1), and what holds of the rows themselves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

use crate::support::{ClusterHouse, until};

/// Keys asked for at once; a command line has an end.
const AT_ONCE: usize = 500;

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

    /// What Redis says, stray keys included.
    fn in_redis(house: &ClusterHouse) -> Result<Self> {
        let line = house.redis(&["ZRANGE", "cs:queue:pending", "0", "-1"])?;
        let line = line.iter().filter(|member| !member.is_empty());
        Ok(Self {
            owners: keys(house, "cs:session:owner:")?,
            active: keys(house, "cs:user:active_session:")?,
            loads: keys(house, "cs:agent:load:")?,
            line: line.map(|member| member.trim_start_matches('0').to_owned()).collect(),
            open: house
                .redis(&["SMEMBERS", "cs:copy:open"])?
                .into_iter()
                .filter(|member| !member.is_empty())
                .collect(),
        })
    }
}

/// Every key with a prefix: what follows the prefix, and the value.
fn keys(house: &ClusterHouse, prefix: &str) -> Result<BTreeMap<String, String>> {
    let names: BTreeSet<String> =
        house.redis(&["--scan", "--pattern", &format!("{prefix}*")])?.into_iter().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found = BTreeMap::new();
    for some in names.chunks(AT_ONCE) {
        let values = house.redis(&[&["MGET"], some].concat())?;
        for (name, value) in some.iter().zip(values) {
            let name = name.strip_prefix(prefix).context("the prefix")?;
            // Taken away between the two commands.
            if !value.is_empty() {
                found.insert(name.to_owned(), value);
            }
        }
    }
    Ok(found)
}

/// Waits until every copy is exact.
pub(crate) async fn until_exact(house: &ClusterHouse) -> Result<()> {
    let waited = until("copies equal to SQL", async || {
        // Not there yet after a kill: the next look finds out.
        let Ok(redis) = Copied::in_redis(house) else { return Ok(false) };
        Ok(redis == Copied::in_sql(house))
    });
    if let Err(error) = waited.await {
        let (sql, redis) = (Copied::in_sql(house), Copied::in_redis(house)?);
        bail!("{error:#}\nSQL: {sql:?}\nRedis: {redis:?}");
    }
    Ok(())
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
