//! A gateway over a world in memory, on a real port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::serve;
use axum::serve::ListenerExt as _;
use futures_util::{SinkExt as _, StreamExt as _};
use kefu_core::{Clock, ManualClock, NodeName, Role, SnowflakeIds, TraceId, WorkerId};
use kefu_desk::{Desk, DeskConfig, DeskParts};
use kefu_gateway::auth::{Authenticator, Claims};
use kefu_gateway::{Gateway, GatewayConfig, GatewayParts, Readiness, Registry, router};
use kefu_memory::MemoryWorld;
use kefu_proptests::fuzz::handler::Place;
use kefu_protocol::Inbound;
use kefu_upload::{LinkSigner, ObjectBlobStore, Uploads};
use object_store::memory::InMemory;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::{accept_async, connect_async};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// Every limit that counts over time is out of the way: a run says more in a second than people do.
fn settings() -> GatewayConfig {
    GatewayConfig {
        allowed_origins: Vec::new(),
        trusted_proxies: Vec::new(),
        demo: false,
        heartbeat: Duration::from_secs(30),
        presence_ttl: Duration::from_secs(60),
        frame_bytes: 65_536,
        max_chars: 500,
        resume_page: 50,
        upload_bytes: 2_097_152,
        message_burst: 1_000_000,
        messages_per_second: 1_000_000,
        connects_per_minute: 10_000_000,
        uploads_per_minute: 30,
        outbound_bytes: 4_194_304,
        in_flight: 4_096,
        shutdown_grace: Duration::from_secs(1),
    }
}

struct Always;

#[async_trait]
impl Readiness for Always {
    async fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// A gateway that serves until dropped.
pub(crate) struct House {
    pub(crate) place: Place,
    _server: JoinSet<()>,
}

impl House {
    pub(crate) async fn open() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let auth = Authenticator::hs256(SECRET, Arc::clone(&clock)).expect("long enough");
        let token = |role, sub: &str| {
            let expires_at = clock.now().after(Duration::from_secs(3_600));
            let claims = Claims { sub: sub.into(), role, name: None, balance: None, expires_at };
            auth.mint(&claims).expect("signed")
        };
        let (user, agent) = (token(Role::User, "u1"), token(Role::Agent, "a1"));
        let router = router(gateway(&clock, auth.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        // A small answer must not wait for the acknowledgement of the one before.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let mut server = JoinSet::new();
        server.spawn(async move { serve(listener, service).await.expect("it serves") });
        Self { place: Place { address, user, agent }, _server: server }
    }
}

fn gateway(clock: &Arc<dyn Clock>, auth: Authenticator) -> Arc<Gateway> {
    let world = MemoryWorld::new(Arc::clone(clock));
    let stores = world.stores();
    let signer = LinkSigner::new(SECRET, Duration::from_secs(900)).expect("long enough");
    let blobs = Arc::new(ObjectBlobStore::new(Arc::new(InMemory::new()), ""));
    let uploads =
        Arc::new(Uploads::new(blobs, Arc::clone(&stores.uploads), signer, Arc::clone(clock)));
    let config = settings();
    let registry = Registry::new(config.outbound_bytes, Arc::clone(&uploads));
    let node = NodeName::new("n1").expect("valid");
    let parts = DeskParts {
        stores,
        coordination: world.coordination(),
        cluster: None,
        connections: registry.clone(),
        uploads,
        ids: Arc::new(SnowflakeIds::new(Arc::clone(clock), WorkerId::default(), 0)),
        clock: Arc::clone(clock),
        node: node.clone(),
        interceptors: Vec::new(),
        config: DeskConfig { connections_per_person: 1_000, ..DeskConfig::default() },
    };
    let trace = TraceId::new("t").expect("valid");
    let desk = Desk::start(parts, &trace, &TaskTracker::new(), &CancellationToken::new());
    Gateway::new(GatewayParts {
        desk,
        registry,
        auth,
        config,
        node,
        metrics: Arc::new(String::new),
        ready: Arc::new(Always),
        tracker: TaskTracker::new(),
        closing: CancellationToken::new(),
    })
}

/// In front of the gateway: passes everything on, but hangs up on what is not a frame, without a word.
pub(crate) async fn hanging_up(behind: SocketAddr) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut calls = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            calls.spawn(pass_on(stream, behind));
        }
    });
    (address, server)
}

async fn pass_on(stream: TcpStream, behind: SocketAddr) {
    drop(stream.set_nodelay(true));
    let mut near = accept_async(stream).await.expect("a socket");
    let (mut far, _) = connect_async(format!("ws://{behind}/ws")).await.expect("a socket");
    loop {
        tokio::select! {
            said = near.next() => {
                let Some(Ok(said)) = said else { return };
                let is_frame = said.to_text().is_ok_and(|text| Inbound::parse(text, 500).is_ok());
                if !is_frame || far.send(said).await.is_err() {
                    return;
                }
            }
            told = far.next() => {
                let Some(Ok(told)) = told else { return };
                if near.send(told).await.is_err() {
                    return;
                }
            }
        }
    }
}
