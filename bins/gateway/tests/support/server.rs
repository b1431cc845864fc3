//! The `gateway` binary as a child process on a free loopback port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kefu_core::{Balance, Clock, Role, SystemClock};
use kefu_gateway::auth::{Authenticator, Claims};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::PATIENCE;

/// Signs the tokens of all tests.
const SECRET: &str = "a secret of the end-to-end tests, long enough for anybody";

/// How a server is to be started.
#[derive(Debug, Clone, Default)]
pub struct ServerBuilder {
    environment: Vec<(String, String)>,
    listen: Option<SocketAddr>,
    small_disk: Option<PathBuf>,
}

impl ServerBuilder {
    /// Sets one key in its environment form, say `KEFU__LIMITS__MESSAGE_BURST`.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.environment.push((key.into(), value.to_string()));
        self
    }

    /// Listens there instead of on a free port.
    pub fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = Some(listen);
        self
    }

    /// Gives it a file system of 12 MiB at `folder`, half of it taken by a file called `filler`, which
    /// only it sees (a mount namespace of its own).
    pub fn on_small_disk(mut self, folder: &Path) -> Self {
        self.small_disk = Some(folder.to_owned());
        self
    }

    /// Starts it on a new, empty data folder.
    pub async fn start(self) -> Result<Server> {
        let folder = Arc::new(TempDir::new()?);
        let data = folder.path().join("data");
        self.start_on(data, Some(folder)).await
    }

    /// Starts it on a data folder that somebody else keeps.
    pub async fn start_in(self, data: PathBuf) -> Result<Server> {
        self.start_on(data, None).await
    }

    async fn start_on(self, data: PathBuf, folder: Option<Arc<TempDir>>) -> Result<Server> {
        let mut child = self.command(&data).spawn().context("the gateway binary starts")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await??;
            let Some(line) = line else { bail!("the gateway ended before it listened") };
            if let Some(address) = address_in(&line) {
                break address;
            }
        };
        Ok(Server { child, address, data, folder, builder: self })
    }

    /// The command line, for tests of failing starts.
    pub fn command(&self, data: &Path) -> Command {
        let listen = self.listen.map_or("127.0.0.1:0".to_owned(), |listen| listen.to_string());
        let mut command = match &self.small_disk {
            None => Command::new(env!("CARGO_BIN_EXE_gateway")),
            Some(disk) => on_small_disk(disk),
        };
        command
            .env("KEFU__SERVER__LISTEN", listen)
            .env("KEFU__DATA_DIR", data)
            .env("KEFU__AUTH__SECRET", SECRET)
            .env("KEFU__PRESENCE__AGENT_GRACE_MS", "120000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        for (key, value) in &self.environment {
            command.env(key, value);
        }
        command
    }
}

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub data: PathBuf,
    folder: Option<Arc<TempDir>>,
    builder: ServerBuilder,
}

impl Server {
    /// A server with default settings.
    pub async fn start() -> Result<Self> {
        ServerBuilder::default().start().await
    }

    /// `kill -9`, as a crash would; then the same server on the same port and data.
    pub async fn kill_and_restart(mut self) -> Result<Self> {
        self.child.kill().await?;
        let builder = self.builder.clone().listen(self.address);
        builder.start_on(self.data.clone(), self.folder.clone()).await
    }

    /// `kill -9`.
    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// SIGTERM; returns how long the process took to end, and whether it ended well.
    pub async fn terminate(mut self) -> Result<(Duration, bool)> {
        let pid = self.pid();
        let begin = tokio::time::Instant::now();
        let sent = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        anyhow::ensure!(sent.success(), "the signal was sent");
        let status = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await??;
        Ok((begin.elapsed(), status.success()))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// The database file, which another process may read.
    pub fn database(&self) -> PathBuf {
        self.data.join("kefu.db")
    }

    /// An HTTP URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A user's token.
    pub fn user(&self, sub: &str) -> String {
        self.token(sub, Role::User, None)
    }

    /// A user's token with a balance.
    pub fn user_with_balance(&self, sub: &str, balance: i64) -> String {
        self.token(sub, Role::User, Some(Balance(balance)))
    }

    /// An agent's token.
    pub fn agent(&self, sub: &str) -> String {
        self.token(sub, Role::Agent, None)
    }

    /// A supervisor's token.
    pub fn supervisor(&self, sub: &str) -> String {
        self.token(sub, Role::Supervisor, None)
    }

    fn token(&self, sub: &str, role: Role, balance: Option<Balance>) -> String {
        self.token_for(sub, role, balance, Duration::from_secs(3_600))
    }

    /// A token that lives for `life`.
    pub fn token_for(
        &self,
        sub: &str,
        role: Role,
        balance: Option<Balance>,
        life: Duration,
    ) -> String {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let expires_at = clock.now().after(life);
        let authenticator = Authenticator::hs256(SECRET.as_bytes(), clock).expect("a good secret");
        let name = Some(format!("{sub} name"));
        let claims = Claims { sub: sub.to_owned(), role, name, balance, expires_at };
        authenticator.mint(&claims).expect("HS256 can mint")
    }
}

/// The process keeps its id through both `exec`s, so that `/proc/<pid>/root` shows its disk.
fn on_small_disk(disk: &Path) -> Command {
    let script = r#"mount -t tmpfs -o size=12m tmpfs "$1" && head -c 6m /dev/zero > "$1/filler" && exec "$2""#;
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(disk)
        .arg(env!("CARGO_BIN_EXE_gateway"));
    command
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split("http://").nth(1)?;
    rest.split(['/', ' ']).next()?.parse().ok()
}
