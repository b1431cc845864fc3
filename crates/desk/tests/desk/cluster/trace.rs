//! A frame's trace, from the store's call on its own node to the push on another: by the spans in which they happen.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

use kefu_core::{ConnId, TraceId};
use kefu_desk::{ConnectRequest, Intent, SendRequest, Stores};
use kefu_messaging::{Draft, Receipt};
use kefu_testkit::Late;
use kefu_testkit::build::key;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Id, Instrument as _, Subscriber, span};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, registry};

use super::{House, talking};
use crate::common::{agent, idle, visitor};

/// What happened, and inside which spans.
struct Happened {
    what: String,
    /// Of each span around it, the outermost first: its name and the traces it is about.
    spans: Vec<(&'static str, Vec<String>)>,
}

/// While there is one dispatcher alone, `tracing` asks the thread that reaches a span first whether anybody wants
/// it, for ever; that may be the thread of a test without one. Of two it asks both.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(registry()));

/// Notes what is said to the target `probe`.
#[derive(Clone, Default)]
struct Probe(Arc<Mutex<Vec<Happened>>>);

impl Probe {
    /// On this thread, which is all of a test with paused time.
    fn begin() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let probe = Self::default();
        let guard = registry().with(probe.clone()).set_default();
        (probe, guard)
    }

    /// What happened because of a frame, each with the names of all spans around it.
    fn because_of(&self, trace: &str) -> Vec<(String, Vec<&'static str>)> {
        let happened = self.0.lock().expect("no panic");
        let of_it = happened.iter().filter(|happened| {
            happened.spans.iter().any(|(_, traces)| traces.iter().any(|known| known == trace))
        });
        let named = |happened: &Happened| happened.spans.iter().map(|(name, _)| *name).collect();
        of_it.map(|happened| (happened.what.clone(), named(happened))).collect()
    }
}

/// The traces of a span.
struct Of(Vec<String>);

impl Visit for Of {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "trace_id" | "trace_ids") {
            let value = format!("{value:?}");
            self.0.extend(value.split(',').map(str::to_owned));
        }
    }
}

struct Said(String);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Probe {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut of = Of(Vec::new());
        attributes.record(&mut of);
        context.span(id).expect("new").extensions_mut().insert(of);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != "probe" {
            return;
        }
        let mut said = Said(String::new());
        event.record(&mut said);
        let spans = context.event_scope(event).into_iter().flat_map(Scope::from_root);
        let spans = spans.map(|span| {
            let extensions = span.extensions();
            (span.name(), extensions.get::<Of>().map(|of| of.0.clone()).unwrap_or_default())
        });
        let happened = Happened { what: said.0, spans: spans.collect() };
        self.0.lock().expect("no panic").push(happened);
    }
}

fn named(trace: &str) -> TraceId {
    TraceId::new(trace).expect("valid")
}

/// Stores that say when they are called.
fn telling(stores: &Stores) -> Stores {
    Stores {
        sessions: Arc::new(Late::new(Arc::clone(&stores.sessions))),
        messages: Arc::new(Late::new(Arc::clone(&stores.messages))),
        assignments: Arc::new(Late::new(Arc::clone(&stores.assignments))),
        ..stores.clone()
    }
}

fn happened(what: &str, spans: &[&'static str]) -> (String, Vec<&'static str>) {
    (what.to_owned(), spans.to_vec())
}

#[tokio::test(start_paused = true)]
async fn what_is_said_on_one_node_has_one_trace_from_the_store_to_the_push_on_another() {
    let (probe, _guard) = Probe::begin();
    let house = House::build();
    let a = house.node_over("a", telling(&house.stores)).await;
    let b = house.node_over("b", telling(&house.stores)).await;
    let session = talking(&a, &b).await;

    let request = SendRequest {
        session_id: Some(session),
        client_msg_id: key("k"),
        draft: Draft::Text("text".into()),
        open_session: None,
    };
    let (by, conn) = (visitor("u1"), ConnId(1));
    let sent = a.scene.desk.send(&by, Some(conn), request, &named("t-message")).expect("queued");
    let message = sent.await.expect("stored").message;
    idle().await;
    let of_message = [happened("store", &["append"]), happened("message to 10", &["event"])];
    assert_eq!(probe.because_of("t-message"), of_message);

    // As the gateway does it: its task is inside the frame's span.
    let frame = |trace: &TraceId| tracing::info_span!("frame", trace_id = %trace);
    let trace = named("t-typing");
    let typed = a.scene.desk.typing(&by, conn, session, true, &trace);
    typed.instrument(frame(&trace)).await.expect("relayed");
    idle().await;
    let of_typing = [happened("store", &["frame"]), happened("typing to 10", &["push"])];
    assert_eq!(probe.because_of("t-typing"), of_typing);

    let (by, trace) = (agent("a1"), named("t-ack"));
    let acked =
        b.scene.desk.acknowledge(&by, None, message.msg_id, Receipt::Delivered, false, &trace);
    acked.instrument(frame(&trace)).await.expect("taken");
    idle().await;
    let of_ack = [happened("store", &["receipts"]), happened("peer_ack to 1", &["push"])];
    assert_eq!(probe.because_of("t-ack"), of_ack);
}

#[tokio::test(start_paused = true)]
async fn what_the_drain_gives_has_the_trace_of_the_frame_that_made_it_run() {
    let (probe, _guard) = Probe::begin();
    let house = House::build();
    let a = house.node_over("a", telling(&house.stores)).await;
    let b = house.node("b").await;
    b.scene.agent("a1", 10, 5).await;
    idle().await;
    let (by, conn, trace) = (visitor("u1"), ConnId(1), named("t-open"));
    a.scene.people.add(conn, by.person());
    let request = ConnectRequest {
        intent: Intent::Consult,
        source: "shop".into(),
        positions: Default::default(),
    };
    a.scene.desk.connect(&by, conn, &request, &trace).await.expect("connected");
    idle().await;
    let of_it = probe.because_of("t-open");
    assert!(of_it.contains(&happened("store", &["event", "drain"])), "Z3: {of_it:?}");
    assert!(of_it.contains(&happened("session_new to 10", &["event"])), "N1: {of_it:?}");
}
