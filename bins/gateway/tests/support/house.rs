//! Several gateways and drainers as child processes over one PostgreSQL and one Redis.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kefu_testkit::server::free_port;
use kefu_testkit::server::postgres::{self, PostgresServer, TestDatabase};
use kefu_testkit::server::redis::RedisServer;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use super::server::{SECRET, signal};
use super::{Server, ServerBuilder};

/// How long a condition may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);
/// Between two looks at what nobody announces: another process, a table, a copy.
const PAUSE: Duration = Duration::from_millis(50);

/// How a house is to be started.
#[derive(Debug, Clone, Default)]
pub(crate) struct HouseBuilder {
    gateways: usize,
    drainers: usize,
    settings: Vec<(String, String)>,
    own_postgres: bool,
}

impl HouseBuilder {
    /// So many of each.
    pub(crate) fn of(gateways: usize, drainers: usize) -> Self {
        Self { gateways, drainers, ..Self::default() }
    }

    /// Sets one key of every process, in its environment form.
    pub(crate) fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push((key.into(), value.to_string()));
        self
    }

    /// Without limits that a client under load would meet.
    pub(crate) fn without_limits(self) -> Self {
        self.set("KEFU__LIMITS__MESSAGE_BURST", 1_000_000)
            .set("KEFU__LIMITS__MESSAGES_PER_SECOND", 1_000_000)
            .set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1_000_000)
    }

    /// On a PostgreSQL that the test may stop.
    pub(crate) fn with_own_postgres(mut self) -> Self {
        self.own_postgres = true;
        self
    }

    /// Starts it on an empty database and an empty Redis; everything is ready.
    pub(crate) async fn start(self) -> Result<ClusterHouse> {
        let postgres = match self.own_postgres {
            // Gone with this process, which the database's lifetime must span.
            true => Box::leak(Box::new(PostgresServer::start())),
            false => postgres::shared(),
        };
        let database = postgres.database(migrate);
        let mut house = ClusterHouse {
            gateways: Vec::new(),
            drainers: Vec::new(),
            postgres,
            database,
            redis: RedisServer::start(),
            folder: TempDir::new()?,
            settings: self.settings,
            begun: 0,
        };
        for _ in 0..self.gateways {
            house.join().await?;
        }
        for _ in 0..self.drainers {
            house.add_drainer().await?;
        }
        Ok(house)
    }
}

/// Makes the tables as an operator does.
fn migrate(url: &str) {
    let mut command = ServerBuilder::default()
        .set("KEFU__PROFILE", "cluster")
        .set("KEFU__POSTGRES__URL", url)
        .set("KEFU__REDIS__URL", "redis://127.0.0.1:1")
        .command(Path::new("unused"));
    let done = command.arg("migrate").stdout(Stdio::null()).status();
    assert!(done.expect("the gateway binary starts").success(), "gateway migrate");
}

/// A running cluster. Its processes are killed when it is dropped.
pub(crate) struct ClusterHouse {
    pub(crate) gateways: Vec<Server>,
    pub(crate) drainers: Vec<Drainer>,
    pub(crate) postgres: &'static PostgresServer,
    database: TestDatabase<'static>,
    pub(crate) redis: RedisServer,
    folder: TempDir,
    settings: Vec<(String, String)>,
    begun: usize,
}

impl ClusterHouse {
    /// One more gateway, once it is ready; its index. Named `gateway-<n>` in order of their starts.
    pub(crate) async fn join(&mut self) -> Result<usize> {
        self.begun += 1;
        let name = format!("gateway-{}", self.begun);
        let mut builder = ServerBuilder::default();
        for (key, value) in self.environment(&name) {
            builder = builder.set(&key, value);
        }
        let server = builder.start_in(self.folder.path().join(name)).await?;
        until_ready(&server.url("/readyz")).await?;
        self.gateways.push(server);
        Ok(self.gateways.len() - 1)
    }

    /// `kill -9`, and the same gateway again on its port.
    pub(crate) async fn kill_and_restart(&mut self, index: usize) -> Result<()> {
        let server = self.gateways.remove(index).kill_and_restart().await?;
        until_ready(&server.url("/readyz")).await?;
        self.gateways.insert(index, server);
        Ok(())
    }

    /// One more drainer, once it is ready. Named `drainer-<n>`.
    pub(crate) async fn add_drainer(&mut self) -> Result<()> {
        self.begun += 1;
        let name = format!("drainer-{}", self.begun);
        let binary = Path::new(env!("CARGO_BIN_EXE_gateway")).with_file_name("queue-drainer");
        ensure!(
            binary.is_file(),
            "{} is missing: `cargo build --workspace --bins` (with --release if the tests are)",
            binary.display()
        );
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(binary)
            .env("KEFU__PRESENCE__AGENT_GRACE_MS", "120000")
            .env("KEFU__AUTH__SECRET", SECRET)
            .envs(self.environment(&name))
            .env("KEFU__DRAINER__LISTEN", &address)
            .env("KEFU__DATA_DIR", self.folder.path().join(&name))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        self.drainers.push(Drainer { child, name, address });
        until_ready(&self.drainers[self.drainers.len() - 1].url("/readyz")).await
    }

    fn environment(&self, name: &str) -> Vec<(String, String)> {
        let images = self.folder.path().join("images").display().to_string();
        let own = [
            ("KEFU__PROFILE", "cluster".to_owned()),
            ("KEFU__POSTGRES__URL", self.database.url()),
            ("KEFU__REDIS__URL", self.redis.url()),
            ("KEFU__NODE__NAME", name.to_owned()),
            ("KEFU__UPLOAD__DIR", images),
        ];
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
        own.chain(self.settings.iter().cloned()).collect()
    }

    /// Rows of a query, as another program's SQL sees them.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let text = self.database.query(sql);
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    }

    /// The one number that a query gives.
    pub(crate) fn count(&self, sql: &str) -> Result<u64> {
        self.database.query(sql).parse().with_context(|| sql.to_owned())
    }

    /// Runs SQL, as an operator would.
    pub(crate) fn execute(&self, sql: &str) {
        self.database.query(sql);
    }

    /// The answer of `redis-cli` to one command, a line a value; an absent one is an empty line.
    pub(crate) fn redis(&self, command: &[&str]) -> Result<Vec<String>> {
        let done = Command::new("redis-cli").args(["-u", &self.redis.url()]).args(command).output();
        let done = done.context("redis-cli is not installed: `apt-get install redis-tools`")?;
        ensure!(done.status.success(), "redis-cli: {}", String::from_utf8_lossy(&done.stderr));
        Ok(String::from_utf8(done.stdout)?.lines().map(str::to_owned).collect())
    }

    /// Which drainer has a task now.
    pub(crate) fn holder(&self, task: &str) -> Option<usize> {
        let rows = self.rows(&format!(
            "SELECT holder FROM cg_lease WHERE name = '{task}' \
             AND expires_at > extract(epoch FROM clock_timestamp()) * 1000"
        ));
        let name = rows.first()?.first()?.clone();
        self.drainers.iter().position(|drainer| drainer.name == name)
    }

    /// What `/readyz` of a gateway says is missing; `None` when nothing is.
    pub(crate) async fn missing(&self, gateway: usize) -> Result<Option<String>> {
        missing(&self.gateways[gateway].url("/readyz")).await
    }
}

/// A running `queue-drainer`.
pub(crate) struct Drainer {
    child: Child,
    name: String,
    address: String,
}

impl Drainer {
    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops every thread of it.
    pub(crate) fn freeze(&self) -> Result<()> {
        signal(self.child.id(), "-STOP")
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> Result<()> {
        signal(self.child.id(), "-CONT")
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that other processes do and nobody announces here.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_so().await.with_context(|| what.to_owned())? {
        ensure!(begin.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        // tidy: the pause between two looks at a condition.
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn until_ready(url: &str) -> Result<()> {
    // An error is a process that does not listen yet.
    until("ready", async || Ok(matches!(missing(url).await, Ok(None)))).await
}

async fn missing(url: &str) -> Result<Option<String>> {
    let answer: Value = reqwest::get(url).await?.json().await?;
    Ok(answer["missing"].as_str().map(str::to_owned))
}
