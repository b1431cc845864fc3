//! The listener, from binding it to the end of the process.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;

use crate::accept;
use crate::command::print;
use crate::config::Config;
use crate::demo;
use crate::embedded;
use crate::house::House;
use crate::lifecycle::{Signals, shut_down};
use crate::signing_secret::SigningSecret;
use crate::telemetry::Metrics;

/// Serves until the first signal, then ends in order (L3); a second signal ends at once.
pub(crate) async fn serve(
    config: &Config,
    metrics: Metrics,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let listen = config.server.listen;
    // First of all: a taken port must not disturb a house that is already running.
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("server.listen: cannot listen on {listen}"))?;
    let address = listener.local_addr().context("server.listen")?;
    embedded::make_data_dir(&config.data_dir)?;
    let secret = SigningSecret::load(config)?;
    let demo = demo::is_enabled(config, &secret);
    let house = House::start(config, &secret, demo, metrics).await?;

    let router = kefu_gateway::router(std::sync::Arc::clone(&house.gateway));
    let serving = accept::serve(listener, router, accept::HEAD_WITHIN, house.closing.clone());
    let mut http = house.requests.spawn(serving);

    tracing::info!(%address, demo, "listening");
    announce(address, out);
    let stopped = tokio::select! {
        () = signals.next() => Ok(()),
        _ = &mut http => Err(anyhow::anyhow!("the listener has stopped")),
    };
    let grace = Duration::from_millis(config.server.shutdown_grace_ms);
    tokio::select! {
        () = shut_down(house, http, grace) => stopped,
        () = signals.next() => bail!("stopped at once by a second signal"),
    }
}

/// Prints what to open in a browser. Scripts wait for these lines, so they come last.
///
/// A script that read what it wanted and closed its end must not take the server down with it.
fn announce(address: SocketAddr, out: &mut (dyn Write + Send)) {
    let base = format!("http://{}", reachable(address));
    let urls = format!("visitor page:  {base}/\nagent console: {base}/console");
    if let Err(error) = print(out, &urls) {
        tracing::warn!(%error, "nobody reads stdout");
    }
}

/// An address to connect to: "any" is one only for listening.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}
