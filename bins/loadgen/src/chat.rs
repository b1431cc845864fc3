//! Visitors write, agents read and acknowledge; times count from when a message should have been sent.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::person::Person;

/// Visitors per agent: the largest cap that an agent may choose (CC-03).
const PER_AGENT: usize = 10;
/// Between two rounds of an agent's acknowledgements.
const ACK_EVERY: Duration = Duration::from_millis(50);
/// How long an answer may take after the end, before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Microseconds that a histogram can hold: a minute.
const LONGEST: u64 = 60_000_000;

/// How fast visitors write.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// All together, each message at its own moment, whatever became of the earlier ones.
    PerSecond(u32),
    /// As fast as acknowledgements come, this many under way per visitor.
    Window(usize),
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to connect.
    pub gateways: Vec<SocketAddr>,
    /// Signs the tokens.
    pub secret: String,
    /// How many visitors write.
    pub visitors: usize,
    /// How fast.
    pub pace: Pace,
    /// All agents on this gateway and all visitors on the others.
    pub agents_on: Option<usize>,
    /// What does not count.
    pub warm_up: Duration,
    /// What counts.
    pub measured: Duration,
    /// Begins the names of this run's people, so that runs do not meet.
    pub name: String,
}

/// Microseconds.
pub type Times = Histogram<u64>;

/// How it went, in the time that counts.
pub struct Report {
    /// How long that was.
    pub measured: Duration,
    /// Messages acknowledged by the server.
    pub stored: u64,
    /// The same, with those of the warm-up and of the end: so many rows there must be.
    pub acknowledged: u64,
    /// Messages that reached their agent.
    pub delivered: u64,
    /// From when a message should have been sent to its `server_ack`.
    pub acks: Times,
    /// From the same moment to its `chat.message.new` at the agent.
    pub deliveries: Times,
}

impl Report {
    /// Messages stored per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.stored as f64 / self.measured.as_secs_f64()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |times: &Times| {
            let at = |quantile| times.value_at_quantile(quantile) as f64 / 1_000.0;
            format!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(1.0))
        };
        write!(
            f,
            "{:.0} messages/s stored; server_ack {}; delivery {}",
            self.per_second(),
            show(&self.acks),
            show(&self.deliveries)
        )
    }
}

/// When people count what they see, on one clock.
#[derive(Clone)]
struct Watch {
    start: Instant,
    from: Instant,
    until: Instant,
}

impl Watch {
    fn counts(&self, moment: Instant) -> bool {
        (self.from..self.until).contains(&moment)
    }

    fn micros(&self, moment: Instant) -> u64 {
        u64::try_from(moment.duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }
}

/// Runs the load and reports.
///
/// # Errors
/// When a connection cannot be made, is closed, or a frame is refused.
pub async fn run(load: &Load) -> Result<Report> {
    ensure!(
        !load.gateways.is_empty() && load.visitors > 0,
        "nobody to write to, or nobody who writes"
    );
    let agents = connect_agents(load).await?;
    let visitors = connect_visitors(load).await?;
    let start = Instant::now();
    let from = start + load.warm_up;
    let watch = Watch { start, from, until: from + load.measured };
    let finished = CancellationToken::new();
    let mut reading = JoinSet::new();
    for agent in agents {
        reading.spawn(read(agent, watch.clone(), finished.clone()));
    }
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut writing = JoinSet::new();
    let count = visitors.len();
    for (number, (visitor, session)) in visitors.into_iter().enumerate() {
        let writer = Writer::new(visitor, session, load, number, count, watch.clone())?;
        let writer = Writer { acknowledged: Arc::clone(&acknowledged), ..writer };
        writing.spawn(writer.run());
    }
    let (stored, acks) = gather(writing).await?;
    finished.cancel();
    let (delivered, deliveries) = gather(reading).await?;
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    Ok(Report { measured: load.measured, stored, acknowledged, delivered, acks, deliveries })
}

async fn gather(mut tasks: JoinSet<Result<Times>>) -> Result<(u64, Times)> {
    let mut all = times()?;
    while let Some(one) = tasks.join_next().await {
        all.add(one.context("a task failed")??)?;
    }
    Ok((all.len(), all))
}

fn times() -> Result<Times> {
    Ok(Histogram::new_with_bounds(1, LONGEST, 3)?)
}

async fn connect_agents(load: &Load) -> Result<Vec<Person>> {
    let mut agents = Vec::new();
    for number in 0..load.visitors.div_ceil(PER_AGENT) {
        let gateway = load.agents_on.unwrap_or(number % load.gateways.len());
        let gateway = *load.gateways.get(gateway).context("there is no such gateway")?;
        let sub = format!("{}-a{number}", load.name);
        let mut agent = Person::connect(gateway, &load.secret, &sub, "agent").await?;
        agent.send("chat.agent.online", &json!({"maxSessions": PER_AGENT})).await?;
        agents.push(agent);
    }
    Ok(agents)
}

async fn connect_visitors(load: &Load) -> Result<Vec<(Person, Value)>> {
    let gateways: Vec<_> = match load.agents_on {
        Some(theirs) if load.gateways.len() > 1 => {
            let others = load.gateways.iter().enumerate().filter(|(number, _)| *number != theirs);
            others.map(|(_, gateway)| *gateway).collect()
        }
        Some(_) | None => load.gateways.clone(),
    };
    let mut visitors = Vec::new();
    for number in 0..load.visitors {
        let sub = format!("{}-u{number}", load.name);
        let gateway = gateways[number % gateways.len()];
        let mut visitor = Person::connect(gateway, &load.secret, &sub, "user").await?;
        let mut assigned = visitor.expect("chat.session.assigned").await?;
        visitors.push((visitor, assigned["sessionId"].take()));
    }
    Ok(visitors)
}

/// One visitor who writes.
struct Writer {
    visitor: Person,
    session: Value,
    watch: Watch,
    pace: Pace,
    /// When the first message of a rate is due, and how far apart they are.
    first: Instant,
    period: Duration,
    /// When each message under way should have been sent.
    under_way: BTreeMap<u64, Instant>,
    next: u64,
    acks: Times,
    /// Of all visitors together.
    acknowledged: Arc<AtomicU64>,
}

impl Writer {
    fn new(
        visitor: Person,
        session: Value,
        load: &Load,
        number: usize,
        count: usize,
        watch: Watch,
    ) -> Result<Self> {
        let (count, number) = (u32::try_from(count)?, u32::try_from(number)?);
        let period = match load.pace {
            Pace::PerSecond(per_second) => Duration::from_secs(1) * count / per_second.max(1),
            Pace::Window(_) => Duration::ZERO,
        };
        // Visitors take turns, so that a rate is even.
        let first = watch.start + period * number / count;
        let (under_way, acks) = (BTreeMap::new(), times()?);
        Ok(Self {
            visitor,
            session,
            watch,
            pace: load.pace,
            first,
            period,
            under_way,
            next: 0,
            acks,
            acknowledged: Arc::default(),
        })
    }

    async fn run(mut self) -> Result<Times> {
        if let Pace::Window(window) = self.pace {
            for _ in 0..window {
                self.send(Instant::now()).await?;
            }
        }
        while !self.under_way.is_empty() || Instant::now() < self.watch.until {
            let due = self.due();
            tokio::select! {
                frame = self.visitor.next() => self.take(&frame?).await?,
                () = tokio::time::sleep_until(due) => {
                    match self.pace {
                        Pace::PerSecond(_) if due < self.watch.until => self.send(due).await?,
                        Pace::PerSecond(_) | Pace::Window(_) => {
                            ensure!(due < self.patience(), "no answer");
                        }
                    }
                }
            }
        }
        Ok(self.acks)
    }

    /// When there is something to do without a frame.
    fn due(&self) -> Instant {
        match self.pace {
            Pace::PerSecond(_) => {
                let turns = u32::try_from(self.next).unwrap_or(u32::MAX);
                let due = self.first + self.period * turns;
                match (due < self.watch.until, self.under_way.is_empty()) {
                    (true, _) => due,
                    (false, true) => self.watch.until,
                    (false, false) => self.patience(),
                }
            }
            Pace::Window(_) => self.patience(),
        }
    }

    fn patience(&self) -> Instant {
        self.watch.until + PATIENCE
    }

    async fn send(&mut self, intended: Instant) -> Result<()> {
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, intended);
        let micros = self.watch.micros(intended);
        let payload = json!({
            "sessionId": self.session,
            "msgType": "text",
            "content": format!("{micros} a message of the usual length, about sixty characters"),
            "clientMsgId": format!("{number}"),
        });
        self.visitor.send("chat.message.send", &payload).await
    }

    async fn take(&mut self, frame: &Value) -> Result<()> {
        match frame["event"].as_str() {
            Some("chat.message.server_ack") => {}
            Some("chat.error") => bail!("refused: {frame}"),
            Some(_) | None => return Ok(()),
        }
        let number: u64 = frame["payload"]["clientMsgId"].as_str().context("a key")?.parse()?;
        let Some(intended) = self.under_way.remove(&number) else { return Ok(()) };
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        if self.watch.counts(now) {
            let took = now.duration_since(intended);
            self.acks.saturating_record(u64::try_from(took.as_micros())?.max(1));
        }
        match self.pace {
            Pace::Window(_) if now < self.watch.until => self.send(now).await,
            Pace::Window(_) | Pace::PerSecond(_) => Ok(()),
        }
    }
}

/// One agent, who acknowledges everything now and then, until all visitors have finished.
async fn read(mut agent: Person, watch: Watch, finished: CancellationToken) -> Result<Times> {
    let mut deliveries = times()?;
    let mut newest: BTreeMap<String, Value> = BTreeMap::new();
    let mut rounds = tokio::time::interval(ACK_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = agent.next() => {
                let mut frame = frame?;
                if frame["event"] != "chat.message.new" {
                    continue;
                }
                let now = Instant::now();
                let payload = &mut frame["payload"];
                if watch.counts(now) && payload["attempt"] == 1 {
                    let took = watch.micros(now).saturating_sub(intended(payload)?);
                    deliveries.saturating_record(took.max(1));
                }
                let session = payload["sessionId"].as_str().context("a session")?.to_owned();
                newest.insert(session, payload["msgId"].take());
            }
            _ = rounds.tick() => {
                for (_, msg_id) in std::mem::take(&mut newest) {
                    let ack = json!({"msgId": msg_id, "status": "delivered", "cumulative": true});
                    agent.send("chat.message.ack", &ack).await?;
                }
            }
            () = finished.cancelled() => return Ok(deliveries),
        }
    }
}

fn intended(payload: &Value) -> Result<u64> {
    let content = payload["content"].as_str().context("a text")?;
    let micros = content.split(' ').next().context("a time")?;
    Ok(micros.parse()?)
}
