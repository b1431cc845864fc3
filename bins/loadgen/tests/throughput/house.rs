//! Two gateways and a drainer on servers of their own.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kefu_postgres::PgStore;
use kefu_testkit::server::free_port;
use kefu_testkit::server::postgres::PostgresServer;
use kefu_testkit::server::redis::RedisServer;
use tempfile::TempDir;

/// Signs the tokens of every run.
pub(crate) const SECRET: &str = "a secret of thirty-two bytes or more";
/// How long a process may take to be ready.
const PATIENCE: Duration = Duration::from_secs(30);
/// The database of all processes.
const DATABASE: &str = "kefu";

/// Everything that a run needs; ended with it.
pub(crate) struct House {
    pub(crate) gateways: Vec<SocketAddr>,
    pub(crate) postgres: PostgresServer,
    pub(crate) redis: RedisServer,
    processes: Vec<Child>,
    folder: TempDir,
}

impl House {
    pub(crate) async fn start() -> Result<Self> {
        let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
        postgres.query("postgres", &format!("CREATE DATABASE {DATABASE}"));
        PgStore::migrate(&postgres.url(DATABASE)).await?;
        let folder = TempDir::new()?;
        let (gateways, processes) = (Vec::new(), Vec::new());
        let mut house = Self { gateways, postgres, redis, processes, folder };
        for _ in 0..2 {
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
            house.spawn("gateway", "KEFU__SERVER__LISTEN", address)?;
            house.gateways.push(address);
        }
        let drainer = SocketAddr::from(([127, 0, 0, 1], free_port()));
        house.spawn("queue-drainer", "KEFU__DRAINER__LISTEN", drainer)?;
        for address in house.gateways.iter().copied().chain([drainer]) {
            ready(address).await?;
        }
        Ok(house)
    }

    fn spawn(&mut self, program: &str, listen: &str, address: SocketAddr) -> Result<()> {
        let log =
            File::create(self.folder.path().join(format!("{program}-{}.log", address.port())))?;
        let process = Command::new(beside(program)?)
            .env("KEFU__PROFILE", "cluster")
            .env("KEFU__DATA_DIR", self.folder.path().join("data"))
            .env("KEFU__AUTH__SECRET", SECRET)
            .env("KEFU__POSTGRES__URL", self.postgres.url(DATABASE))
            .env("KEFU__REDIS__URL", self.redis.url())
            // The sessions of one run's agents must not come back into the line of a later run.
            .env("KEFU__PRESENCE__AGENT_GRACE_MS", "0")
            .env("KEFU__LIMITS__CONNECTS_PER_MINUTE", "1000000")
            .env("KEFU__LIMITS__MESSAGE_BURST", "1000000")
            .env("KEFU__LIMITS__MESSAGES_PER_SECOND", "1000000")
            .env(listen, address.to_string())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        self.processes.push(process);
        Ok(())
    }

    /// The first process of the database server.
    pub(crate) fn postmaster(&self) -> Result<u32> {
        let folder = self.postgres.query("postgres", "SHOW data_directory");
        let file = std::fs::read_to_string(Path::new(folder.trim()).join("postmaster.pid"))?;
        Ok(file.lines().next().context("a process id")?.trim().parse()?)
    }

    /// Rows written by the visitors of a run.
    pub(crate) fn count_messages(&self, name: &str) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM cg_chat_message WHERE sender_id LIKE '{name}-u%'");
        Ok(self.postgres.query(DATABASE, &sql).trim().parse()?)
    }

    /// Takes a run's agents away, so that the next run's visitors are served by its own.
    pub(crate) async fn end_sessions(&self, name: &str) -> Result<()> {
        let sql = format!(
            "UPDATE cg_chat_agent SET availability = 'offline' WHERE admin_id LIKE '{name}-a%'"
        );
        self.postgres.query(DATABASE, &sql);
        Ok(())
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Gone already is as good.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A program of this workspace, in the folder above the one of this test.
fn beside(program: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(Path::parent).context("a target folder")?;
    let path = folder.join(program);
    if !path.exists() {
        bail!("{} is missing; build it with: cargo build --workspace --bins", path.display());
    }
    Ok(path)
}

async fn ready(address: SocketAddr) -> Result<()> {
    let url = format!("http://{address}/readyz");
    let answers = async {
        loop {
            match reqwest::get(&url).await {
                Ok(answer) if answer.status().is_success() => return,
                // tidy: polled, since a process that starts announces nothing to others.
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, answers).await.with_context(|| format!("{url} is not ready"))
}
