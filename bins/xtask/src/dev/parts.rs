//! The processes of the cluster, whose output is shown with their name before each line.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long one may take until it is ready.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long all of them may take to end: a little longer than `server.shutdown_grace_ms`.
const END_LIMIT: Duration = Duration::from_secs(25);

/// What removes the folder of a process that could not do so itself: it waits for the end of its input.
const SWEEPER: &str = r#"cat > /dev/null; rm -rf -- "$1""#;

/// `program`, which the kernel kills when this process ends, however it does. No handler runs at a
/// SIGKILL, and what was left running would hold its ports until somebody looks for it.
pub(super) fn bound_to_this(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Removes `folder` when this process ends, however it does; to be kept until then.
///
/// # Errors
/// It does not start.
pub(super) fn sweep_at_the_end(folder: &Path) -> Result<Child> {
    let mut sweeper = Command::new("sh");
    sweeper.args(["-c", SWEEPER, "kefu-dev-sweeper"]).arg(folder);
    // Ctrl-C in a terminal is for this process alone.
    sweeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
    sweeper.spawn().context("cannot start sh")
}

/// What runs. Dropped, it is killed.
#[derive(Default)]
pub(super) struct Parts {
    running: JoinSet<(&'static str, io::Result<ExitStatus>)>,
    output: JoinSet<()>,
    pids: BTreeMap<&'static str, u32>,
}

impl Parts {
    /// Starts `command` and waits until it prints a line with `ready` in it.
    ///
    /// # Errors
    /// It does not start, or ends before.
    pub(super) async fn start(
        &mut self,
        name: &'static str,
        command: Command,
        ready: &str,
    ) -> Result<()> {
        let child = self.spawn(name, command)?;
        let mut lines = self.attend(name, child)?;
        let waiting = async {
            while let Some(line) = lines.next_line().await? {
                if line.contains(ready) {
                    return Ok(());
                }
            }
            Err(anyhow!("{name} ended before it was ready"))
        };
        timeout(START_LIMIT, waiting).await.with_context(|| format!("{name} is not ready"))??;
        self.output.spawn(tell(name, lines));
        Ok(())
    }

    /// Starts a `command` that does not say when it is ready.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start_silent(&mut self, name: &'static str, command: Command) -> Result<()> {
        let child = self.spawn(name, command)?;
        let lines = self.attend(name, child)?;
        self.output.spawn(tell(name, lines));
        Ok(())
    }

    fn spawn(&mut self, name: &'static str, mut command: Command) -> Result<Child> {
        let child = command
            // Ctrl-C in a terminal is for this process, which ends them in order.
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        self.pids.extend(child.id().map(|pid| (name, pid)));
        Ok(child)
    }

    /// Waits for its end from now on, and shows its errors; gives its other lines.
    fn attend(
        &mut self,
        name: &'static str,
        mut child: Child,
    ) -> Result<Lines<BufReader<impl AsyncRead + Unpin + Send + 'static>>> {
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        self.output.spawn(tell(name, BufReader::new(stderr).lines()));
        self.running.spawn(async move { (name, child.wait().await) });
        Ok(BufReader::new(stdout).lines())
    }

    /// Waits for the end of any of them.
    pub(super) async fn ended(&mut self) -> Error {
        match self.running.join_next().await {
            Some(Ok((name, Ok(status)))) => {
                self.pids.remove(name);
                anyhow!("{name} has ended ({status})")
            }
            Some(Ok((name, Err(error)))) => {
                self.pids.remove(name);
                anyhow!(error).context(name)
            }
            Some(Err(error)) => anyhow!(error),
            None => anyhow!("nothing runs"),
        }
    }

    /// Says which of them end by themselves, until none is left. The others go on: ending one by hand
    /// is a way to see that.
    pub(super) async fn watch(&mut self) {
        while !self.running.is_empty() {
            let ended = self.ended().await;
            eprintln!("{ended:#}; the others go on");
        }
    }

    /// Ends those that still run, in order; what does not end in time is killed.
    pub(super) async fn end(mut self) {
        for pid in self.pids.values() {
            // An error means that it has just ended.
            let _ = Command::new("kill").arg("-TERM").arg(pid.to_string()).status().await;
        }
        let ending = async { while self.running.join_next().await.is_some() {} };
        if timeout(END_LIMIT, ending).await.is_err() {
            eprintln!("killed what did not end within {} s", END_LIMIT.as_secs());
        }
        self.running.shutdown().await;
    }
}

/// Shows lines until they end.
async fn tell(name: &'static str, mut lines: Lines<impl AsyncBufReadExt + Unpin>) {
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("{name}: {line}");
    }
}
