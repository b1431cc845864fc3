//! A throw-away Redis: in memory only, on a free loopback port, gone with the process that started it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use super::free_port;

/// Names a running Redis (6.2 or newer, or Valkey) to use instead of starting one for [`shared`].
pub const REDIS_URL_VARIABLE: &str = "KEFU_TEST_REDIS_URL";

/// How long a server may take until it says that it is ready.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Ports to try; a port that looked free may be taken until the server binds it.
const START_ATTEMPTS: usize = 8;

/// Starts the server in a folder of its own and says its process id. Blocks on a pipe that only the
/// test process holds: when that ends, however it ends, the server is killed and the folder removed.
const SUPERVISOR: &str = r#"
dir=$(mktemp -d) || exit 1
redis-server --bind 127.0.0.1 --dir "$dir" --save "" --appendonly no \
    --maxmemory-policy noeviction "$@" &
echo "pid $!"
cat > /dev/null
kill -9 $!
rm -rf "$dir"
"#;

/// The URL of a server that all tests of this process share, each under a key prefix of its own.
///
/// # Panics
/// When it cannot be started: the message says what to install.
#[must_use]
pub fn shared() -> String {
    static SHARED: OnceLock<RedisServer> = OnceLock::new();
    match std::env::var(REDIS_URL_VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        Ok(_) | Err(_) => SHARED.get_or_init(RedisServer::start).url(),
    }
}

/// The URL of a shared server that refuses any step over two hash slots, as a node of a Redis
/// Cluster does.
///
/// # Panics
/// As [`shared`].
#[must_use]
pub fn shared_slots() -> String {
    static SHARED: OnceLock<RedisServer> = OnceLock::new();
    SHARED.get_or_init(RedisServer::start_with_slots).url()
}

/// A server that one test stops, freezes or empties.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    process: Option<Process>,
}

impl RedisServer {
    /// Starts one.
    ///
    /// # Panics
    /// When that fails: the message says what to install.
    #[must_use]
    pub fn start() -> Self {
        Self::start_as(Mode::Single)
    }

    fn start_with_slots() -> Self {
        let server = Self::start_as(Mode::Slots);
        server.say("CLUSTER ADDSLOTSRANGE 0 16383", "+OK");
        // A fresh node waits two seconds before it takes writes, and tells nobody when it does.
        while !server.ask("CLUSTER INFO").contains("cluster_state:ok") {
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn start_as(mode: Mode) -> Self {
        for _ in 0..START_ATTEMPTS {
            let port = free_port();
            if let Some(process) = Process::start(port, mode) {
                return Self { port, process: Some(process) };
            }
        }
        panic!("redis-server does not start on any of {START_ATTEMPTS} ports");
    }

    /// Where clients find it, also after a restart.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it as `kill -9` does. Nothing survives: it holds everything in memory.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, empty, where it was.
    ///
    /// # Panics
    /// When that fails, or when it was not killed.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "still running");
        self.process = Process::start(self.port, Mode::Single);
        assert!(self.process.is_some(), "port {} was taken meanwhile", self.port);
    }

    /// Freezes it: connections stay, nothing is answered.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Loses every key at once.
    pub fn flush(&self) {
        self.say("FLUSHALL", "+OK");
    }

    /// Closes every connection of clients.
    pub fn cut_clients(&self) {
        for kind in ["NORMAL", "PUBSUB"] {
            self.say(&format!("CLIENT KILL TYPE {kind}"), ":");
        }
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("is running");
        let status = Command::new("kill").args([signal, &process.pid]).status();
        assert!(status.expect("kill is installed").success(), "kill {signal}");
    }

    fn say(&self, command: &str, answer: &str) {
        let got = self.ask(command);
        assert!(got.starts_with(answer), "{command}: {got}");
    }

    /// Sends one inline command over a connection of its own; the server closes it after answering.
    fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("is running");
        write!(stream, "{command}\r\nQUIT\r\n").expect("redis takes a command");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("redis answers");
        answer
    }
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Single,
    Slots,
}

impl Mode {
    fn arguments(self, port: u16) -> Vec<String> {
        let mut all = vec!["--port".to_owned(), port.to_string()];
        if matches!(self, Self::Slots) {
            let between_nodes = (port - 10_000).to_string();
            let slots = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
            all.extend(slots.map(str::to_owned));
            all.extend(["--cluster-port".to_owned(), between_nodes]);
        }
        all
    }
}

/// A supervised server. Dropping it kills the server.
#[derive(Debug)]
struct Process {
    supervisor: Child,
    lifeline: Option<ChildStdin>,
    pid: String,
}

impl Process {
    /// `None` when the server ended before it was ready: its port was taken.
    fn start(port: u16, mode: Mode) -> Option<Self> {
        assert_installed();
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "redis-supervisor"])
            .args(mode.arguments(port))
            // Ctrl-C in a terminal is for whoever started it: the supervisor must live to clean up.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is installed");
        let lifeline = supervisor.stdin.take();
        let output = BufReader::new(supervisor.stdout.take().expect("piped"));
        let mut process = Self { supervisor, lifeline, pid: String::new() };
        process.pid = wait_until_ready(output)?;
        Some(process)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.supervisor.wait();
    }
}

/// Reads the log until the server is ready, and on to its end, so that it never blocks on a full pipe.
fn wait_until_ready(output: impl BufRead + Send + 'static) -> Option<String> {
    let (said, told) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut pid = None;
        for line in output.lines().map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("pid ") {
                pid = Some(number.to_owned());
            } else if line.contains("Ready to accept connections") {
                let _ = said.try_send(pid.clone());
            } else if line.contains("Failed listening") {
                let _ = said.try_send(None);
            }
        }
    });
    told.recv_timeout(START_LIMIT).expect("redis-server says that it is ready")
}

fn assert_installed() {
    let version = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
    assert!(
        version.is_ok_and(|status| status.success()),
        "redis-server is not installed: `apt-get install redis-server`, or name a running one in \
         {REDIS_URL_VARIABLE}"
    );
}
