//! `cargo xtask dev`: a whole cluster on this machine, which is gone when this process ends.

mod parts;
mod proxy;
mod settings;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, ensure};
use kefu_testkit::server::free_port;
use kefu_testkit::server::postgres::PostgresServer;
use kefu_testkit::server::redis::RedisServer;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cargo::Cargo;
use crate::prerequisite;
use parts::Parts;

/// Where the proxy listens unless that is taken.
const USUAL_PORT: u16 = 8080;

/// Runs until SIGINT or SIGTERM; `binaries` says where the two binaries are, built otherwise.
///
/// # Errors
/// Something is missing, or does not start.
pub(crate) fn run(port: Option<u16>, binaries: Option<PathBuf>) -> Result<()> {
    prerequisite::install_missing(&prerequisite::DEV)?;
    let binaries = match binaries {
        Some(folder) => folder,
        None => build()?,
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(port.unwrap_or_else(usual_port), &binaries))
}

/// Release builds: what is tried out is what would be deployed.
fn build() -> Result<PathBuf> {
    Cargo::new(["build", "--release", "--bin", "gateway", "--bin", "queue-drainer"]).run()?;
    // This program lies in the folder of its own profile, beside theirs.
    let own = std::env::current_exe().context("cannot find the build folder")?;
    let target = own.parent().and_then(Path::parent).context("cannot find the build folder")?;
    Ok(target.join("release"))
}

fn usual_port() -> u16 {
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT)).is_ok();
    if is_free { USUAL_PORT } else { free_port() }
}

async fn serve(port: u16, binaries: &Path) -> Result<()> {
    // First of all, so that a signal at any later moment ends what was started by then.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let folder = TempDir::with_prefix("kefu-dev.").context("cannot make a folder")?;
    let _sweeper = parts::sweep_at_the_end(folder.path())?;
    println!("starting PostgreSQL and Redis");
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    postgres.query("postgres", "CREATE DATABASE kefu");
    let cluster = Cluster {
        binaries,
        settings: settings::write(folder.path(), &postgres.url("kefu"), &redis.url())?,
        gateways: [free_loopback(), free_loopback()],
        drainer: free_loopback(),
        proxy: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        folder: folder.path(),
    };
    let mut parts = Parts::default();
    let begun = tokio::select! {
        begun = cluster.start(&mut parts) => begun.map(|()| true),
        () = either(&mut interrupt, &mut terminate) => Ok(false),
    };
    if matches!(begun, Ok(true)) {
        cluster.announce(&postgres.url("kefu"), &redis.url());
        tokio::select! {
            () = parts.watch() => {}
            () = either(&mut interrupt, &mut terminate) => {}
        }
    }
    // Not on stdout: a script may have read what it wanted and closed its end.
    eprintln!("ending");
    parts.end().await;
    begun.map(drop)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn free_loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

/// Who listens where.
struct Cluster<'a> {
    binaries: &'a Path,
    settings: PathBuf,
    gateways: [SocketAddr; 2],
    drainer: SocketAddr,
    proxy: SocketAddr,
    folder: &'a Path,
}

impl Cluster<'_> {
    async fn start(&self, parts: &mut Parts) -> Result<()> {
        let migrated: ExitStatus = self.binary("gateway").arg("migrate").status().await?;
        ensure!(migrated.success(), "`gateway migrate` failed ({migrated})");
        let [one, two] = self.gateways;
        for (name, address) in [("gateway-1", one), ("gateway-2", two)] {
            let mut gateway = self.binary("gateway");
            gateway.env("KEFU__NODE__NAME", name).env("KEFU__SERVER__LISTEN", address.to_string());
            parts.start(name, gateway, "agent console:").await?;
        }
        let mut drainer = self.binary("queue-drainer");
        drainer.env("KEFU__NODE__NAME", "drainer-1");
        drainer.env("KEFU__DRAINER__LISTEN", self.drainer.to_string());
        parts.start("drainer-1", drainer, "sweeping").await?;
        proxy::start(parts, self.folder, self.proxy, self.gateways).await
    }

    fn binary(&self, name: &str) -> Command {
        let mut command = parts::bound_to_this(self.binaries.join(name));
        command.arg("--config").arg(&self.settings);
        command
    }

    /// Scripts wait for the last line.
    fn announce(&self, postgres: &str, redis: &str) {
        let Self { gateways: [one, two], drainer, proxy, .. } = self;
        println!("visitor page:   http://{proxy}/");
        println!("agent console:  http://{proxy}/console");
        for (name, address) in [("gateway-1", one), ("gateway-2", two), ("drainer-1", drainer)] {
            println!("{name}:      http://{address}  (/metrics, /readyz)");
        }
        println!("PostgreSQL:     {postgres}");
        println!("Redis:          {redis}");
        println!("settings:       {}", self.settings.display());
        println!("Ctrl-C ends everything and removes its data.");
    }
}
