//! The `gateway` binary as a child process on a free loopback port.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jsonwebtoken::{EncodingKey, Header};
use kefu_core::{Balance, Clock, Role, SystemClock};
use kefu_gateway::auth::{Authenticator, Claims};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::PATIENCE;

/// Signs the tokens of all tests.
pub(crate) const SECRET: &str = "a secret of the end-to-end tests, long enough for anybody";

/// How a server is to be started.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerBuilder {
    environment: Vec<(String, String)>,
    listen: Option<SocketAddr>,
    small_disk: Option<PathBuf>,
    own_secret: bool,
}

impl ServerBuilder {
    /// Sets one key in its environment form, say `KEFU__LIMITS__MESSAGE_BURST`.
    pub(crate) fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.environment.push((key.into(), value.to_string()));
        self
    }

    /// Listens there instead of on a free port.
    pub(crate) fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = Some(listen);
        self
    }

    /// Lets it make its own secret, so that its demo pages get tokens; those of [`Server::token_for`]
    /// are not valid then.
    pub(crate) fn with_own_secret(mut self) -> Self {
        self.own_secret = true;
        self
    }

    /// Gives it a file system of 12 MiB at `folder`, half of it taken by a file called `filler`, which
    /// only it sees (a mount namespace of its own).
    pub(crate) fn on_small_disk(mut self, folder: &Path) -> Self {
        self.small_disk = Some(folder.to_owned());
        self
    }

    /// Starts it on a new, empty data folder.
    pub(crate) async fn start(self) -> Result<Server> {
        let folder = Arc::new(TempDir::new()?);
        let data = folder.path().join("data");
        self.start_on(data, Some(folder)).await
    }

    /// Starts it on a data folder that somebody else keeps.
    pub(crate) async fn start_in(self, data: PathBuf) -> Result<Server> {
        self.start_on(data, None).await
    }

    async fn start_on(self, data: PathBuf, folder: Option<Arc<TempDir>>) -> Result<Server> {
        let mut child = self.command(&data).spawn().context("the gateway binary starts")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        // Owned from here on, so that a failed start leaves no process behind.
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server { child, address, data, folder, builder: self };
        let listening = spawn_blocking(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).find_map(|line| address_in(&line))
        });
        let address = timeout(PATIENCE, listening).await.context("it does not listen")??;
        server.address = address.context("the gateway ended before it listened")?;
        Ok(server)
    }

    /// The command line, for tests of failing starts.
    pub(crate) fn command(&self, data: &Path) -> Command {
        let listen = self.listen.map_or("127.0.0.1:0".to_owned(), |listen| listen.to_string());
        let mut command = match &self.small_disk {
            None => Command::new(env!("CARGO_BIN_EXE_gateway")),
            Some(disk) => on_small_disk(disk),
        };
        command
            .env("KEFU__SERVER__LISTEN", listen)
            .env("KEFU__DATA_DIR", data)
            .env("KEFU__PRESENCE__AGENT_GRACE_MS", "120000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        if !self.own_secret {
            command.env("KEFU__AUTH__SECRET", SECRET);
        }
        for (key, value) in &self.environment {
            command.env(key, value);
        }
        command
    }
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) data: PathBuf,
    folder: Option<Arc<TempDir>>,
    builder: ServerBuilder,
}

impl Server {
    /// A server with default settings.
    pub(crate) async fn start() -> Result<Self> {
        ServerBuilder::default().start().await
    }

    /// `kill -9`, as a crash would; then the same server on the same port and data.
    pub(crate) async fn kill_and_restart(mut self) -> Result<Self> {
        self.kill()?;
        self.restart().await
    }

    /// After [`Server::kill`]: the same server on the same port and data.
    pub(crate) async fn restart(self) -> Result<Self> {
        let builder = self.builder.clone().listen(self.address);
        builder.start_on(self.data.clone(), self.folder.clone()).await
    }

    /// `kill -9`, and gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM; returns how long the process took to end, and whether it ended well.
    pub(crate) async fn terminate(mut self) -> Result<(Duration, bool)> {
        let begin = tokio::time::Instant::now();
        signal(self.pid(), "-TERM")?;
        let end = spawn_blocking(move || -> std::io::Result<ExitStatus> { self.child.wait() });
        let status =
            timeout(Duration::from_secs(60), end).await.context("it does not end")???;
        Ok((begin.elapsed(), status.success()))
    }

    /// Stops every thread of it: connections stay, nothing is answered.
    pub(crate) fn freeze(&self) -> Result<()> {
        signal(self.pid(), "-STOP")
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> Result<()> {
        signal(self.pid(), "-CONT")
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The database file, which another process may read.
    pub(crate) fn database(&self) -> PathBuf {
        self.data.join("kefu.db")
    }

    /// An HTTP URL of this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A user's token.
    pub(crate) fn user(&self, sub: &str) -> String {
        self.token(sub, Role::User, None)
    }

    /// A user's token with a balance.
    pub(crate) fn user_with_balance(&self, sub: &str, balance: i64) -> String {
        self.token(sub, Role::User, Some(Balance(balance)))
    }

    /// An agent's token.
    pub(crate) fn agent(&self, sub: &str) -> String {
        self.token(sub, Role::Agent, None)
    }

    /// A supervisor's token.
    pub(crate) fn supervisor(&self, sub: &str) -> String {
        self.token(sub, Role::Supervisor, None)
    }

    fn token(&self, sub: &str, role: Role, balance: Option<Balance>) -> String {
        self.token_for(sub, role, balance, Duration::from_secs(3_600))
    }

    /// A token that lives for `life`.
    pub(crate) fn token_for(
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

    /// A token as another system would sign it, with these claims and an hour to live.
    pub(crate) fn signed(&self, mut claims: Value) -> String {
        claims["exp"] = json!(SystemClock::new().now().after(Duration::from_secs(3_600)).0 / 1_000);
        let key = EncodingKey::from_secret(SECRET.as_bytes()).expect("a good secret");
        jsonwebtoken::encode(&Header::default(), &claims, &key).expect("HS256 can sign")
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

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: &str) -> Result<()> {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status()?;
    anyhow::ensure!(sent.success(), "kill {signal} {pid}");
    Ok(())
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split("http://").nth(1)?;
    rest.split(['/', ' ']).next()?.parse().ok()
}
