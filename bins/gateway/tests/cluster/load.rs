//! Pairs that chat over all gateways of a house, while the test does something to it.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use crate::session_id;
use crate::support::{Chatter, Client, ClusterHouse, Ledger, Phase, Progress, Report, Row};

/// How long the pairs may take for what they are waited for.
const DEADLINE: Duration = Duration::from_secs(120);

/// The pairs. Each visitor begins on another gateway than their agent.
pub(crate) struct Load {
    phase: watch::Sender<Phase>,
    addresses: watch::Sender<Vec<SocketAddr>>,
    progress: Arc<watch::Sender<Progress>>,
    people: JoinSet<Result<Ledger>>,
}

impl Load {
    /// Opens one session per pair, each with an agent of its own, and lets them talk.
    pub(crate) async fn start(house: &ClusterHouse, pairs: usize) -> Result<Self> {
        let mut load = Self {
            phase: watch::Sender::new(Phase::Talk),
            addresses: watch::Sender::new(addresses(house)),
            progress: Arc::new(watch::Sender::new(Progress::default())),
            people: JoinSet::new(),
        };
        for number in 0..pairs {
            let (user, agent) = (format!("user-{number}"), format!("agent-{number}"));
            let server = &house.gateways[number % house.gateways.len()];
            let _agent = Client::agent(server, &agent, 1).await?;
            let (mut visitor, connected) = Client::visitor(server, &user).await?;
            visitor.expect("chat.session.assigned").await?;
            let session = session_id(&connected)?;
            let tokens =
                [(user.clone(), server.user(&user)), (agent.clone(), server.agent(&agent))];
            for (side, person) in tokens.into_iter().enumerate() {
                let chatter = Chatter::new(
                    person,
                    session.clone(),
                    (load.addresses.subscribe(), number + side),
                    load.phase.subscribe(),
                    Arc::clone(&load.progress),
                );
                load.people.spawn(chatter.chat());
            }
        }
        Ok(load)
    }

    /// Tells everybody where the gateways are now; who loses a connection goes there.
    pub(crate) fn moved(&self, house: &ClusterHouse) -> Result<()> {
        Ok(self.addresses.send(addresses(house))?)
    }

    /// What all have come to.
    pub(crate) fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Waits until so many more messages are acknowledged.
    pub(crate) async fn acked(&self, more: u64) -> Result<()> {
        let goal = self.progress().acked + more;
        self.wait(&format!("{more} more acks"), |progress| progress.acked >= goal).await
    }

    /// Waits until so many more sends were answered `unavailable`.
    pub(crate) async fn refused(&self, more: u64) -> Result<()> {
        let goal = self.progress().unavailable + more;
        self.wait("unavailable", |progress| progress.unavailable >= goal).await
    }

    async fn wait(&self, what: &str, is_so: impl Fn(&Progress) -> bool) -> Result<()> {
        let mut progress = self.progress.subscribe();
        // Its answer is a read lock, which must be gone before the next look.
        let reached = async { progress.wait_for(is_so).await.map(drop) };
        let reached = timeout(DEADLINE, reached).await;
        let at = self.progress();
        reached.with_context(|| format!("{what} did not come: {at:?}"))??;
        Ok(())
    }

    /// Lets everybody come to rest and hear all that was stored; every ledger against the tables.
    pub(crate) async fn finish(mut self, house: &ClusterHouse) -> Result<Report> {
        self.phase.send(Phase::Listen)?;
        let all = self.people.len();
        self.wait("rest", |progress| progress.listening == all).await?;
        let sql = "SELECT id, last_seq FROM cg_chat_session WHERE user_id LIKE 'user-%'";
        let mut ends = HashMap::new();
        for row in house.rows(sql) {
            ends.insert(row[0].clone(), row[1].parse()?);
        }
        self.phase.send(Phase::Go(Arc::new(ends)))?;
        let mut ledgers = Vec::new();
        while let Some(ledger) = timeout(DEADLINE, self.people.join_next()).await? {
            ledgers.push(ledger??);
        }
        let report = Report::of(&ledgers, &stored(house)?);
        println!("{report:?}, unavailable: {}", self.progress().unavailable);
        report.is_clean()?;
        ensure!(report.unseen == 0, "stored, and never told: {report:?}");
        Ok(report)
    }
}

fn addresses(house: &ClusterHouse) -> Vec<SocketAddr> {
    house.gateways.iter().map(|server| server.address).collect()
}

fn stored(house: &ClusterHouse) -> Result<BTreeMap<String, Vec<Row>>> {
    let sql = "SELECT session_id, msg_id, seq, client_msg_id, create_time FROM cg_chat_message \
               ORDER BY session_id, seq";
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in house.rows(sql) {
        rows.entry(row[0].clone()).or_default().push(Row {
            msg_id: row[1].parse()?,
            seq: row[2].parse()?,
            key: row[3].clone(),
            create_time: row[4].parse()?,
        });
    }
    Ok(rows)
}
