//! A throw-away PostgreSQL on a free loopback port, gone with the process that started it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::free_port;

/// Names a running PostgreSQL (14 or newer) to use instead of starting one for [`shared`]: the URL of
/// a database in which the role may create others.
pub const POSTGRES_URL_VARIABLE: &str = "KEFU_TEST_POSTGRES_URL";

/// Ports to try; a port that looked free may be taken until the server binds it.
const START_ATTEMPTS: usize = 4;

/// Where distributions put programs that are not on the path, newest first.
const FOLDERS: [&str; 5] = [
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/14/bin",
    "/usr/local/bin",
];

const SUPERVISOR: &str = include_str!("postgres.sh");

/// The server that all tests of this process share, each with a database of its own.
///
/// # Panics
/// When it cannot be started: the message says what to install.
#[must_use]
pub fn shared() -> &'static PostgresServer {
    static SHARED: OnceLock<PostgresServer> = OnceLock::new();
    SHARED.get_or_init(|| match std::env::var(POSTGRES_URL_VARIABLE) {
        Ok(url) if !url.is_empty() => PostgresServer::new(url, None),
        Ok(_) | Err(_) => PostgresServer::start(),
    })
}

/// A server, and the databases that tests make in it.
#[derive(Debug)]
pub struct PostgresServer {
    /// Of the maintenance database.
    url: String,
    process: Option<Mutex<Process>>,
    template: OnceLock<String>,
    databases: AtomicU32,
}

/// A database of one test. One in a server that was not started here is dropped with this.
#[derive(Debug)]
pub struct TestDatabase<'a> {
    server: &'a PostgresServer,
    name: String,
}

impl PostgresServer {
    /// Starts one that nobody else uses: a test may stop it.
    ///
    /// # Panics
    /// When that fails: the message says what to install.
    #[must_use]
    pub fn start() -> Self {
        for _ in 0..START_ATTEMPTS {
            let port = free_port();
            if let Some(process) = Process::start(port) {
                let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
                return Self::new(url, Some(Mutex::new(process)));
            }
        }
        panic!("PostgreSQL does not start on any of {START_ATTEMPTS} ports");
    }

    const fn new(url: String, process: Option<Mutex<Process>>) -> Self {
        Self { url, process, template: OnceLock::new(), databases: AtomicU32::new(0) }
    }

    /// The URL of one of its databases.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        with_database(&self.url, database)
    }

    /// A database of its own. The first call lets `prepare` make the one that all are copies of: it is
    /// given the URL of an empty database and leaves no connection behind.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn database(&self, prepare: impl FnOnce(&str)) -> TestDatabase<'_> {
        let template = self.template.get_or_init(|| {
            let name = format!("kefu_template_{}", std::process::id());
            self.query("postgres", &format!("CREATE DATABASE {name}"));
            prepare(&self.url(&name));
            name
        });
        let name = self.next_name();
        self.query("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        TestDatabase { server: self, name }
    }

    /// A database without tables.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn empty_database(&self) -> TestDatabase<'_> {
        let name = self.next_name();
        self.query("postgres", &format!("CREATE DATABASE {name}"));
        TestDatabase { server: self, name }
    }

    /// Runs SQL through `psql`; gives the rows as it prints them, columns separated by `|`.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn query(&self, database: &str, sql: &str) -> String {
        let url = if database == "postgres" { self.url.clone() } else { self.url(database) };
        rows(&url, sql).unwrap_or_else(|refusal| panic!("{sql}: {refusal}"))
    }

    /// Stops it in an orderly way: connections are closed.
    pub fn stop(&self) {
        self.order("stop");
    }

    /// Ends it as a crash does: nothing is written any more; the next start recovers from the log.
    pub fn crash(&self) {
        self.order("crash");
    }

    /// Starts it again where it was.
    pub fn resume(&self) {
        self.order("start");
    }

    /// Freezes every process of it: connections stay, nothing is answered.
    pub fn freeze(&self) {
        self.order("freeze");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.order("thaw");
    }

    fn order(&self, order: &str) {
        let process = self.process.as_ref().expect("only a server that was started here");
        process.lock().expect("no panic inside").order(order);
    }

    fn next_name(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        format!("kefu_test_{}_{number}", std::process::id())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let (None, Some(template)) = (&self.process, self.template.get()) {
            drop_database(self, template);
        }
    }
}

impl TestDatabase<'_> {
    /// Where clients find it.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs SQL as a program that is not kefu; gives the rows as `psql` prints them, columns
    /// separated by `|`.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn query(&self, sql: &str) -> String {
        self.server.query(&self.name, sql)
    }

    /// As [`Self::query`], with what `psql` prints about a refusal.
    ///
    /// # Errors
    /// The refusal.
    pub fn try_query(&self, sql: &str) -> Result<String, String> {
        rows(&self.url(), sql)
    }
}

impl Drop for TestDatabase<'_> {
    fn drop(&mut self) {
        // A server of ours goes as a whole, which is quicker.
        if self.server.process.is_none() {
            drop_database(self.server, &self.name);
        }
    }
}

fn drop_database(server: &PostgresServer, name: &str) {
    let _ = psql(&server.url, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
}

/// What `psql` prints: the rows, or the refusal.
pub(super) fn rows(url: &str, sql: &str) -> Result<String, String> {
    let output = psql(url, sql);
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn psql(url: &str, sql: &str) -> Output {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
        .output();
    output.expect("psql is not installed: `apt-get install postgresql-client`")
}

/// `url` with another database.
fn with_database(url: &str, database: &str) -> String {
    let (before, query) =
        url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    let start = before.find("://").map_or(0, |at| at + 3);
    let end = before[start..].find('/').map_or(before.len(), |at| start + at);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{database}{query}", &before[..end])
}

/// A supervised server. Dropping it stops the server and removes its folder.
#[derive(Debug)]
struct Process {
    supervisor: Child,
    orders: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// `None` when the server ended before it was ready: its port was taken.
    fn start(port: u16) -> Option<Self> {
        let folder = binaries();
        let mut supervisor = as_server_user("sh")
            .args(["-c", SUPERVISOR, "postgres-supervisor", &port.to_string(), folder])
            // Ctrl-C in a terminal is for whoever started it: the supervisor must live to clean up.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh and runuser are installed");
        let orders = supervisor.stdin.take();
        let answers = BufReader::new(supervisor.stdout.take().expect("piped")).lines();
        let mut process = Self { supervisor, orders, answers };
        // The first answer names its folder.
        process.answers.next()?.ok()?;
        Some(process)
    }

    fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("open until the drop");
        writeln!(orders, "{order}").expect("the supervisor lives");
        let answer = self.answers.next().expect("an answer").expect("text");
        assert_eq!(answer, "done", "{order}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.supervisor.wait();
    }
}

/// A command that PostgreSQL and its kin accept: they refuse to run as root.
pub(super) fn as_server_user(program: &str) -> Command {
    // The folder of a process's own is the only way to its user id without unsafe code.
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--", program]).current_dir("/");
    command
}

/// The folder of the programs.
///
/// # Panics
/// When there is none.
fn binaries() -> &'static str {
    let complete = |folder: &&str| {
        ["initdb", "pg_ctl", "postgres"].iter().all(|name| Path::new(folder).join(name).exists())
    };
    let found = FOLDERS.into_iter().find(complete);
    found.unwrap_or_else(|| {
        panic!(
            "PostgreSQL is not installed: `apt-get install postgresql`, or name a running one in \
             {POSTGRES_URL_VARIABLE}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn the_database_of_a_url_is_replaced() {
        for (url, expected) in [
            ("postgres://u:p@h:1/postgres", "postgres://u:p@h:1/x"),
            ("postgres://h", "postgres://h/x"),
            ("postgres://h/?sslmode=disable", "postgres://h/x?sslmode=disable"),
        ] {
            assert_eq!(with_database(url, "x"), expected);
        }
    }
}
