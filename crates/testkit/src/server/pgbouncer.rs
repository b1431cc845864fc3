//! A throw-away pgbouncer in transaction mode: every transaction may meet another connection, and
//! nothing that belongs to a connection is kept.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::free_port;
use super::postgres::{PostgresServer, as_server_user, rows};

/// How long it may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);

const SUPERVISOR: &str = include_str!("pgbouncer.sh");

/// A running pooler before one server.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    supervisor: Child,
    lifeline: Option<ChildStdin>,
}

impl PgBouncer {
    /// Starts one before `server`, which must be on TCP.
    ///
    /// # Panics
    /// When that fails: the message says what to install.
    #[must_use]
    pub fn start(server: &PostgresServer) -> Self {
        let url = server.url("postgres");
        let address = url.split(['@', '/']).find(|part| part.contains(':') && !part.ends_with(':'));
        let (host, server_port) = address.and_then(|part| part.split_once(':')).expect("host:port");
        let port = free_port();
        let mut supervisor = as_server_user("sh")
            .args(["-c", SUPERVISOR, "pgbouncer-supervisor", &port.to_string(), host, server_port])
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            // Ctrl-C in a terminal is for whoever started it: the supervisor must live to clean up.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh and runuser are installed");
        let lifeline = supervisor.stdin.take();
        wait_until_ready(BufReader::new(supervisor.stdout.take().expect("piped")));
        Self { port, supervisor, lifeline }
    }

    /// The URL of a database of the server, by way of the pooler.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL in a database of the server, by way of the pooler; gives the rows as `psql` prints
    /// them, columns separated by `|`.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    pub fn query(&self, database: &str, sql: &str) -> String {
        rows(&self.url(database), sql).unwrap_or_else(|refusal| panic!("{sql}: {refusal}"))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.supervisor.wait();
    }
}

/// Reads the log until the pooler is ready, and on to its end, so that it never blocks on a full pipe.
fn wait_until_ready(output: impl BufRead + Send + 'static) {
    let (said, told) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if line.contains("process up") {
                let _ = said.try_send(());
            }
        }
    });
    told.recv_timeout(START_LIMIT)
        .expect("pgbouncer is not installed or does not start: `apt-get install pgbouncer`");
}
