//! A gateway over a world in memory, people with tokens, and requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use kefu_assignment::Origin;
use kefu_core::{
    Caller, ClientMsgId, Clock, ConnId, ManualClock, NodeName, Role, SessionId, SnowflakeIds,
    TraceId, WorkerId,
};
use kefu_desk::{ConnectRequest, Desk, DeskConfig, DeskParts, Intent, SendRequest};
use kefu_gateway::auth::{Authenticator, Claims};
use kefu_gateway::{Gateway, GatewayConfig, GatewayParts, Readiness, Registry, router};
use kefu_memory::MemoryWorld;
use kefu_messaging::Draft;
use kefu_upload::{BlobEntry, BlobError, BlobStore, LinkSigner, UploadPath, Uploads};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
pub(crate) const MAX_FILE: usize = 2_097_152;

/// Images in memory; putting one waits while the shelf is shut.
pub(crate) struct Shelf {
    images: Mutex<HashMap<UploadPath, Bytes>>,
    pub(crate) open: Semaphore,
    pub(crate) arrived: Semaphore,
}

impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.images.lock().unwrap().len()
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

#[async_trait]
impl BlobStore for Shelf {
    async fn put(&self, path: &UploadPath, bytes: Bytes) -> Result<(), BlobError> {
        self.arrived.add_permits(1);
        let _passed = self.open.acquire().await.expect("never closed");
        self.images.lock().unwrap().insert(*path, bytes);
        Ok(())
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<Bytes>, BlobError> {
        Ok(self.images.lock().unwrap().get(path).cloned())
    }

    async fn delete(&self, path: &UploadPath) -> Result<(), BlobError> {
        self.images.lock().unwrap().remove(path);
        Ok(())
    }

    async fn list(&self, _: Option<&UploadPath>, _: usize) -> Result<Vec<BlobEntry>, BlobError> {
        Ok(Vec::new())
    }
}

/// Whether the store is said to answer.
pub(crate) struct Switch(pub(crate) AtomicBool);

#[async_trait]
impl Readiness for Switch {
    async fn check(&self) -> Result<(), &'static str> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { Err("store") }
    }
}

/// One gateway.
pub(crate) struct House {
    pub(crate) router: Router,
    pub(crate) desk: Arc<Desk>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) ready: Arc<Switch>,
    pub(crate) closing: CancellationToken,
    pub(crate) tracker: TaskTracker,
    auth: Authenticator,
    next_conn: AtomicU64,
}

/// A person with a token.
pub(crate) struct Somebody {
    pub(crate) caller: Caller,
    pub(crate) token: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("json")
    }

    /// The error's code, after checking that the error has its whole shape.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let error = &self.json()["error"];
        assert!(error["message"].is_string() && error["traceId"].is_string(), "{error}");
        error["code"].as_str().expect("a code").to_owned()
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status.as_u16(), self.code().as_str()), (status, code), "{self:?}");
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

pub(crate) fn config() -> GatewayConfig {
    GatewayConfig {
        allowed_origins: Vec::new(),
        trusted_proxies: Vec::new(),
        demo: true,
        heartbeat: Duration::from_secs(30),
        presence_ttl: Duration::from_secs(60),
        frame_bytes: 65_536,
        max_chars: 500,
        resume_page: 50,
        upload_bytes: MAX_FILE as u64,
        message_burst: 100,
        messages_per_second: 20,
        connects_per_minute: 600,
        uploads_per_minute: 30,
        outbound_bytes: 262_144,
        in_flight: 16,
        shutdown_grace: Duration::from_secs(20),
    }
}

pub(crate) fn trace() -> TraceId {
    TraceId::new("t").unwrap()
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: GatewayConfig) -> Self {
        let clock = Arc::new(ManualClock::default());
        let time: Arc<dyn Clock> = clock.clone();
        let world = MemoryWorld::new(Arc::clone(&time));
        let stores = world.stores();
        let shelf = Arc::new(Shelf {
            images: Mutex::default(),
            open: Semaphore::new(100),
            arrived: Semaphore::new(0),
        });
        let signer = LinkSigner::new(SECRET, Duration::from_secs(900)).unwrap();
        let uploads = Arc::new(Uploads::new(
            shelf.clone(),
            Arc::clone(&stores.uploads),
            signer,
            Arc::clone(&time),
        ));
        let registry = Registry::new(config.outbound_bytes, Arc::clone(&uploads));
        let (tracker, closing) = (TaskTracker::new(), CancellationToken::new());
        let node = NodeName::new("n1").unwrap();
        let parts = DeskParts {
            stores,
            coordination: world.coordination(),
            cluster: None,
            connections: registry.clone(),
            uploads,
            ids: Arc::new(SnowflakeIds::new(Arc::clone(&time), WorkerId::default(), 0)),
            clock: Arc::clone(&time),
            node: node.clone(),
            interceptors: Vec::new(),
            config: DeskConfig::default(),
        };
        let desk = Desk::start(parts, &trace(), &TaskTracker::new(), &CancellationToken::new());
        let auth = Authenticator::hs256(SECRET, time).unwrap();
        let ready = Arc::new(Switch(AtomicBool::new(true)));
        let gateway = Gateway::new(GatewayParts {
            desk: Arc::clone(&desk),
            registry,
            auth: auth.clone(),
            config,
            node,
            metrics: Arc::new(|| "kefu_up 1\n".to_owned()),
            ready: ready.clone(),
            tracker: tracker.clone(),
            closing: closing.clone(),
        });
        let next_conn = AtomicU64::new(1_000);
        let router = router(gateway);
        Self { router, desk, clock, shelf, ready, closing, tracker, auth, next_conn }
    }

    pub(crate) fn somebody(&self, role: Role, sub: &str) -> Somebody {
        let claims = Claims {
            sub: sub.to_owned(),
            role,
            name: None,
            balance: None,
            expires_at: self.clock.now().after(Duration::from_secs(3_600)),
        };
        let token = self.auth.mint(&claims).unwrap();
        Somebody { caller: self.auth.verify(&token).unwrap().caller, token }
    }

    /// A user with an open session.
    pub(crate) async fn visitor(&self, sub: &str) -> (Somebody, SessionId) {
        let user = self.somebody(Role::User, sub);
        let session = self.connect(&user).await.expect("an open session");
        (user, session)
    }

    /// An agent who is online and owns `session`, by the drain or by a claim.
    pub(crate) async fn agent_of(&self, sub: &str, session: SessionId) -> Somebody {
        let agent = self.somebody(Role::Agent, sub);
        self.connect(&agent).await;
        self.desk.agent_online(&agent.caller, 10, Origin::default(), &trace()).await.unwrap();
        let owns = async {
            while self.desk.upload_target(&agent.caller, Some(session)).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), owns).await.expect("assigned");
        agent
    }

    async fn connect(&self, person: &Somebody) -> Option<SessionId> {
        let request = ConnectRequest {
            intent: Intent::Consult,
            source: "web".into(),
            positions: BTreeMap::new(),
        };
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        self.desk.connect(&person.caller, conn, &request, &trace()).await.unwrap().session_id
    }

    pub(crate) async fn say(&self, person: &Somebody, session: SessionId, text: &str) {
        self.send(person, session, Draft::Text(text.to_owned())).await;
    }

    pub(crate) async fn send(&self, person: &Somebody, session: SessionId, draft: Draft) {
        let key = self.next_conn.fetch_add(1, Ordering::Relaxed);
        let request = SendRequest {
            session_id: Some(session),
            client_msg_id: ClientMsgId::new(key.to_string()).unwrap(),
            draft,
            open_session: None,
        };
        self.desk.send(&person.caller, None, request, &trace()).unwrap().await.unwrap();
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(request("GET", path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get_as(&self, person: &Somebody, path: &str) -> Answer {
        let request = request("GET", path).header(header::AUTHORIZATION, person.bearer());
        self.call(request.body(Body::empty()).unwrap()).await
    }

    /// Uploads a form.
    pub(crate) async fn upload(&self, person: &Somebody, query: &str, form: Form) -> Answer {
        self.call(form.request(person, query)).await
    }
}

impl Somebody {
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

pub(crate) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "localhost:8080")
}

/// A multipart form.
#[derive(Default)]
pub(crate) struct Form(Vec<u8>);

impl Form {
    const BOUNDARY: &str = "b0undary";

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.part(&format!("form-data; name=\"{name}\""), "text/plain", value.as_bytes());
        self
    }

    pub(crate) fn file(mut self, file_name: &str, bytes: &[u8]) -> Self {
        let disposition = format!("form-data; name=\"file\"; filename=\"{file_name}\"");
        self.part(&disposition, "image/png", bytes);
        self
    }

    fn part(&mut self, disposition: &str, content_type: &str, bytes: &[u8]) {
        let head = format!(
            "--{}\r\ncontent-disposition: {disposition}\r\ncontent-type: {content_type}\r\n\r\n",
            Self::BOUNDARY
        );
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
    }

    /// What came so far, without the end.
    pub(crate) fn unfinished(self) -> Bytes {
        self.0.into()
    }

    pub(crate) fn request(mut self, person: &Somebody, query: &str) -> Request<Body> {
        self.0.extend_from_slice(format!("--{}--\r\n", Self::BOUNDARY).as_bytes());
        upload_request(person, query, Body::from(self.0))
    }
}

pub(crate) fn upload_request(person: &Somebody, query: &str, body: Body) -> Request<Body> {
    request("POST", &format!("/api/v1/uploads{query}"))
        .header(header::AUTHORIZATION, person.bearer())
        .header(header::CONTENT_TYPE, format!("multipart/form-data; boundary={}", Form::BOUNDARY))
        .body(body)
        .unwrap()
}

/// A picture of `width` × `height`.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(width, height).write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

/// A picture with so much behind its end that the file has `len` bytes.
pub(crate) fn png_of_len(len: usize) -> Vec<u8> {
    let mut file = png(4, 3);
    file.resize(len, b'x');
    file
}

/// The names of the fields of an object.
pub(crate) fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}
