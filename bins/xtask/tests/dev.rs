//! `cargo xtask dev`: a cluster behind a proxy serves a page and a WebSocket, and leaves nothing
//! behind.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use kefu_testkit::server::free_port;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// For a machine that does many other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command, killed when dropped.
struct Dev(Child);

impl Drop for Dev {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Beside this command, where `cargo test --workspace` builds them.
fn binaries() -> &'static Path {
    let folder = Path::new(env!("CARGO_BIN_EXE_xtask")).parent().unwrap();
    for name in ["gateway", "queue-drainer"] {
        assert!(folder.join(name).is_file(), "{name} is not built: run cargo test --workspace");
    }
    folder
}

/// Starts the command; what it prints until it is ready.
async fn start(port: u16) -> (Dev, Vec<String>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["dev", "--port", &port.to_string(), "--binaries"])
        .arg(binaries())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let dev = Dev(child);
    let reading = spawn_blocking(move || {
        let mut said = Vec::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let is_last = line.starts_with("Ctrl-C");
            said.push(line);
            if is_last {
                break;
            }
        }
        said
    });
    let said = timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert!(said.last().is_some_and(|line| line.starts_with("Ctrl-C")), "{said:?}");
    (dev, said)
}

async fn terminate(mut dev: Dev) -> ExitStatus {
    let sent = Command::new("kill").args(["-TERM", &dev.0.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ending = spawn_blocking(move || dev.0.wait().unwrap());
    timeout(PATIENCE, ending).await.unwrap().unwrap()
}

fn addresses(said: &[String]) -> Vec<SocketAddr> {
    let schemes = ["http://", "@", "redis://"];
    let after = |line: &String| {
        let rest = schemes.iter().find_map(|scheme| line.split_once(scheme))?.1.to_owned();
        rest.split(['/', ' ']).next()?.parse().ok()
    };
    said.iter().filter_map(after).collect()
}

fn folder(said: &[String]) -> PathBuf {
    let settings = said.iter().find_map(|line| line.strip_prefix("settings:")).unwrap().trim();
    PathBuf::from(settings).parent().unwrap().to_owned()
}

async fn demo_token(proxy: &str) -> String {
    let client = reqwest::Client::new();
    let request = client.post(format!("http://{proxy}/demo/token"));
    let answer = request.header("origin", format!("http://{proxy}")).json(&json!({"role": "user"}));
    let answer = answer.send().await.unwrap().error_for_status().unwrap();
    let answer: Value = answer.json().await.unwrap();
    answer["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_cluster_serves_pages_and_sockets_through_its_proxy_and_leaves_nothing_behind() {
    let port = free_port();
    let (dev, said) = start(port).await;
    let proxy = format!("127.0.0.1:{port}");

    let page = reqwest::get(format!("http://{proxy}/")).await.unwrap();
    let page = page.error_for_status().unwrap().text().await.unwrap();
    assert!(page.contains("<html"), "{page}");
    let token = demo_token(&proxy).await;
    let (mut socket, _) = connect_async(format!("ws://{proxy}/ws")).await.unwrap();
    let connect = json!({
        "event": "chat.connect",
        "payload": {"token": token, "source": "test"},
        "ref": "1",
    });
    socket.send(Message::text(connect.to_string())).await.unwrap();
    let answer = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
    assert_eq!(answer["event"], "chat.connected", "{answer}");

    let listening = addresses(&said);
    assert_eq!(listening.len(), 7, "proxy twice, two gateways, drainer, two servers: {said:?}");
    assert!(listening.iter().all(|address| TcpStream::connect(address).is_ok()));
    let folder = folder(&said);
    assert!(folder.is_dir());

    assert!(terminate(dev).await.success());
    let left: Vec<_> =
        listening.iter().filter(|address| TcpStream::connect(address).is_ok()).collect();
    assert!(left.is_empty(), "these still listen: {left:?}");
    assert!(!folder.exists(), "the folder is removed");
}

#[tokio::test]
async fn a_cluster_whose_command_is_killed_ends_with_it() {
    let (mut dev, said) = start(free_port()).await;
    let (listening, folder) = (addresses(&said), folder(&said));
    assert_eq!(listening.len(), 7, "{said:?}");
    dev.0.kill().unwrap();
    dev.0.wait().unwrap();
    let left = || -> Vec<_> {
        listening.iter().filter(|address| TcpStream::connect(address).is_ok()).collect()
    };
    let gone = async {
        while !left().is_empty() || folder.exists() {
            // tidy: between two looks at what other processes do and announce to nobody.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = timeout(PATIENCE, gone).await;
    assert!(
        in_time.is_ok(),
        "left: {:?}, {} is there: {}",
        left(),
        folder.display(),
        folder.exists()
    );
}
