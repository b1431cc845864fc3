//! The registry under schedules chosen by shuttle: pushes while a connection is answered, closed and
//! removed. Tasks may be switched between any two calls; within a call its locks are held.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use kefu_core::{ClientMsgId, ManualClock, MsgId, Seq, SessionId, Timestamp, UserId};
use kefu_memory::MemoryWorld;
use kefu_messaging::{Message, MessageStatus, MessageType, Sender};
use kefu_upload::{LinkSigner, ObjectBlobStore};
use shuttle::future::{block_on, spawn, yield_now};

use super::*;

/// Random schedules of each scene, and schedules by priorities (PCT).
const RANDOM: usize = 3_000;
const PCT: usize = 600;
const DEPTH: usize = 3;
const CONN: ConnId = ConnId(1);
const MESSAGES: i64 = 4;
const CONNECTED: &str = "connected ";

fn person() -> Person {
    Person::User(UserId::new("u").expect("valid"))
}

fn session() -> SessionId {
    SessionId::new(7).expect("positive")
}

fn message(seq: i64) -> Push {
    let message = Message {
        msg_id: MsgId::new(seq).expect("positive"),
        session_id: session(),
        seq: Seq(seq),
        sender: Sender::User(UserId::new("u").expect("valid")),
        client_msg_id: ClientMsgId::new("k").expect("valid"),
        msg_type: MessageType::Text,
        content: format!("text {seq}"),
        status: MessageStatus::Pending,
        create_time: Timestamp(0),
    };
    Push::Message { message: Arc::new(message), attempt: 1, own: false }
}

fn uploads() -> Arc<Uploads> {
    let clock = Arc::new(ManualClock::default());
    let stores = MemoryWorld::new(Arc::<ManualClock>::clone(&clock)).stores();
    let blobs = ObjectBlobStore::new(Arc::new(object_store::memory::InMemory::new()), "");
    let signer = LinkSigner::new(&[7; 32], Duration::from_secs(900)).expect("long enough");
    Arc::new(Uploads::new(Arc::new(blobs), stores.uploads, signer, clock))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Registered first, held back afterwards.
    HeldLate,
    /// The history is read first, the connection registered afterwards.
    RegisteredLate,
}

/// One connection: what writes to it, and what its client reads.
struct Scene {
    registry: Arc<Registry>,
    outbound: Arc<Outbound>,
    stored: AtomicI64,
    /// The first message that was pushed after the answer to the connect.
    first_after: AtomicI64,
    pushed: AtomicI64,
    is_removed: AtomicBool,
}

impl Scene {
    fn new() -> Arc<Self> {
        let registry = Registry::new(1 << 20, uploads());
        let outbound = registry.outbound();
        Arc::new(Self {
            registry,
            outbound,
            stored: AtomicI64::new(0),
            first_after: AtomicI64::new(0),
            pushed: AtomicI64::new(0),
            is_removed: AtomicBool::new(false),
        })
    }

    fn register(&self) {
        self.registry.add(Peer {
            conn: CONN,
            person: person(),
            is_supervisor: false,
            locale: Locale::En,
            outbound: Arc::clone(&self.outbound),
        });
    }

    /// As the connection task does it: hold, register, read, answer.
    async fn connect(&self, mistake: Mistake) {
        let mut upto = Seq(0);
        match mistake {
            Mistake::None => {
                self.outbound.hold();
                yield_now().await;
                self.register();
            }
            Mistake::HeldLate => {
                self.register();
                yield_now().await;
                self.outbound.hold();
            }
            Mistake::RegisteredLate => {
                upto = Seq(self.stored.load(Ordering::SeqCst));
                self.outbound.hold();
                yield_now().await;
                self.register();
            }
        }
        yield_now().await;
        if mistake != Mistake::RegisteredLate {
            upto = Seq(self.stored.load(Ordering::SeqCst));
        }
        yield_now().await;
        let answer = format!("{CONNECTED}{}", upto.0).into();
        self.outbound.release(vec![answer], &[session()], &BTreeMap::from([(session(), upto)]));
        self.first_after.store(self.pushed.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        for answer in ["first answer", "second answer"] {
            yield_now().await;
            self.outbound.answer(answer.into(), Note::None);
        }
    }

    /// Each message is stored, then pushed.
    async fn send(&self) {
        for seq in 1..=MESSAGES {
            self.stored.store(seq, Ordering::SeqCst);
            yield_now().await;
            let was_removed = self.is_removed.load(Ordering::SeqCst);
            let reach = self.registry.push(&person(), &message(seq), None).await;
            self.pushed.store(seq, Ordering::SeqCst);
            assert!(!was_removed || reach.connections == 0, "a removed connection was reached");
            yield_now().await;
        }
    }

    async fn leave(&self) {
        self.registry.remove(&person(), CONN);
        self.is_removed.store(true, Ordering::SeqCst);
        yield_now().await;
        self.outbound.close(CloseCode::Restart);
    }

    /// All frames until the close, a few bytes at a time.
    async fn read(&self) -> Vec<Utf8Bytes> {
        let mut read = Vec::new();
        loop {
            match self.outbound.next(1).await {
                Next::Frames(frames) => read.extend(frames),
                Next::Close(_) => return read,
            }
            yield_now().await;
        }
    }
}

/// The messages among the frames, after what the answer to the connect covers. Answers in order.
fn messages_of(frames: &[Utf8Bytes]) -> (i64, Vec<i64>) {
    let first = frames.first().expect("answered").as_str();
    let upto = first.strip_prefix(CONNECTED).expect("the answer was overtaken");
    let number = |frame: &Utf8Bytes| {
        (1..=MESSAGES).find(|seq| frame.as_str().contains(&format!("text {seq}")))
    };
    let texts = frames.iter().map(Utf8Bytes::as_str);
    let answers: Vec<_> = texts.filter(|text| text.ends_with(" answer")).collect();
    assert_eq!(answers, ["first answer", "second answer"]);
    (upto.parse().expect("a number"), frames.iter().filter_map(number).collect())
}

/// Connects while four messages are sent; closes after them, or among them.
fn scene(mistake: Mistake, leaves_early: bool) {
    block_on(async move {
        let scene = Scene::new();
        let reader = Arc::clone(&scene);
        let reading = spawn(async move { reader.read().await });
        let sender = Arc::clone(&scene);
        let sending = spawn(async move { sender.send().await });
        scene.connect(mistake).await;
        if leaves_early {
            scene.leave().await;
        }
        sending.await.expect("sent");
        if !leaves_early {
            scene.leave().await;
        }
        let (upto, messages) = messages_of(&reading.await.expect("read"));
        // One that was stored before the answer was read and pushed after it comes again, and the
        // client knows it by its id (M2, "a push may repeat what an answer carried"). None that was
        // held back does.
        let (again, new): (Vec<_>, Vec<_>) = messages.into_iter().partition(|seq| *seq <= upto);
        let first_after = scene.first_after.load(Ordering::SeqCst);
        assert!(again.iter().all(|seq| *seq >= first_after), "a message that was held is doubled");
        assert!(again.is_sorted_by(|one, next| one < next), "a push is doubled");
        let sent = upto + i64::try_from(new.len()).expect("few");
        let end = if leaves_early { sent } else { MESSAGES };
        let expected: Vec<_> = (upto + 1..=end).collect();
        assert_eq!(new, expected, "a message was lost or doubled");
        assert!(scene.registry.is_empty() && scene.registry.people.is_empty());
        let late = scene.outbound.push(&message(1), "late".into());
        assert!(!late, "a closed connection takes nothing");
    });
}

fn holds(name: &str, scene: fn()) {
    let given = std::env::var("KEFU_TEST_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| text.parse().expect("a number"));
    eprintln!("repeat with: KEFU_TEST_SEED={seed} cargo test --workspace --lib {name}");
    shuttle::check_random_with_seed(scene, seed, RANDOM);
    let priorities = shuttle::scheduler::PctScheduler::new_from_seed(seed, DEPTH, PCT);
    shuttle::Runner::new(priorities, shuttle::Config::new()).run(scene);
}

fn is_caught(reason: &str, scene: fn()) {
    let outcome = catch_unwind(|| shuttle::check_random_with_seed(scene, 7, RANDOM));
    let panic = outcome.expect_err("no schedule failed");
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let text = text.unwrap_or_default();
    assert!(text.contains(reason), "failed for another reason: {text}");
}

#[test]
fn a_connect_among_pushes_loses_nothing_and_is_not_overtaken() {
    holds("a_connect_among_pushes", || scene(Mistake::None, false));
}

#[test]
fn who_left_among_pushes_is_reached_no_more() {
    holds("who_left_among_pushes", || scene(Mistake::None, true));
}

#[test]
fn every_broken_connect_is_caught() {
    is_caught("the answer was overtaken", || scene(Mistake::HeldLate, false));
    is_caught("a message was lost or doubled", || scene(Mistake::RegisteredLate, false));
}
