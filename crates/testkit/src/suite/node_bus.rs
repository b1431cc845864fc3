//! `NodeBus`: words between nodes (N1, N3, N4).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kefu_console::PageView;
use kefu_core::{EventId, MsgId, NodeName, Person, Seq, SessionId, Timestamp};
use kefu_desk::{Heard, NodeBus, NodeMessage, Relayed};
use kefu_events::{Envelope, EventContext};
use kefu_messaging::{Message, MessageStatus, MessageType, Sender};
use tokio::sync::mpsc::Receiver;

use crate::suite::outbox::every_event;
use crate::{NodeBusHarness, build};

/// How long a word may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Every kind of word arrives as it was said.
pub async fn every_word_survives<H: NodeBusHarness>() {
    let harness = H::start().await;
    let (a, b) = (harness.node(&node("a")).await, harness.node(&node("b")).await);
    let _ = a.subscribe().await;
    let mut heard = b.subscribe().await;
    let words = every_word();
    for word in &words {
        a.broadcast(word).await.unwrap();
        a.send(&to(&["b"]), word).await.unwrap();
    }
    for word in &words {
        assert_eq!(next(&mut heard).await, *word);
        assert_eq!(next(&mut heard).await, *word);
    }
}

/// N1: an addressed word reaches those it is for, a broadcast one everybody else, its own node neither.
pub async fn words_reach_whom_they_are_for<H: NodeBusHarness>() {
    let harness = H::start().await;
    let mut ends = Vec::new();
    for name in ["a", "b", "c"] {
        let bus = harness.node(&node(name)).await;
        let heard = bus.subscribe().await;
        ends.push((bus, heard));
    }
    let said = [typing(1), typing(2), typing(3)];
    ends[0].0.send(&to(&["b"]), &said[0]).await.unwrap();
    ends[0].0.broadcast(&said[1]).await.unwrap();
    ends[0].0.send(&to(&["a", "b", "c", "nobody"]), &said[2]).await.unwrap();
    // A last word from elsewhere shows that node `a` heard nothing before it.
    ends[1].0.send(&to(&["a"]), &typing(9)).await.unwrap();
    assert_eq!(next(&mut ends[0].1).await, typing(9), "nobody hears themselves");
    for expected in &said {
        assert_eq!(next(&mut ends[1].1).await, *expected);
    }
    for expected in &said[1..] {
        assert_eq!(next(&mut ends[2].1).await, *expected);
    }
}

/// What one node says to another keeps its order, addressed and broadcast mixed, others speaking too.
pub async fn one_nodes_words_keep_their_order<H: NodeBusHarness>() {
    let harness = H::start().await;
    let listener = harness.node(&node("listener")).await;
    let mut heard = listener.subscribe().await;
    let mut speakers: Vec<Arc<dyn NodeBus>> = Vec::new();
    for name in ["s0", "s1", "s2"] {
        let speaker = harness.node(&node(name)).await;
        let _ = speaker.subscribe().await;
        speakers.push(speaker);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for (number, speaker) in speakers.into_iter().enumerate() {
        tasks.spawn(async move {
            for n in 0..200 {
                let word = typing(number as i64 * 1_000 + n + 1);
                match n % 2 {
                    0 => speaker.broadcast(&word).await.unwrap(),
                    _ => speaker.send(&to(&["listener"]), &word).await.unwrap(),
                }
            }
        });
    }
    let mut last = [0; 3];
    for _ in 0..600 {
        let NodeMessage::Push { push: Relayed::Typing { session_id, .. }, .. } =
            next(&mut heard).await
        else {
            panic!("only typing was said");
        };
        let speaker = usize::try_from((session_id.get() - 1) / 1_000).unwrap();
        assert!(session_id.get() > last[speaker], "out of order: {session_id}");
        last[speaker] = session_id.get();
    }
    while tasks.join_next().await.transpose().unwrap().is_some() {}
}

/// A listener that does not keep up hears a gap before anything later; nobody waits for it.
pub async fn a_slow_listener_hears_a_gap<H: NodeBusHarness>() {
    let harness = H::start().await;
    let (a, b) = (harness.node(&node("a")).await, harness.node(&node("b")).await);
    let _ = a.subscribe().await;
    let mut heard = b.subscribe().await;
    // Far more than any bounded queue here holds.
    for n in 1..=20_000 {
        a.send(&to(&["b"]), &typing(n)).await.unwrap();
    }
    let (mut last, mut gaps) = (0, 0);
    // Words go on until one arrives that was said after the listener woke up.
    for n in 20_001.. {
        match receive(&mut heard).await {
            Heard::Gap => gaps += 1,
            Heard::Message(word) => {
                let id = id_of(&word);
                assert!(id > last, "out of order");
                assert!(id == last + 1 || gaps > 0, "{id} follows {last} without a gap");
                last = id;
            }
        }
        a.send(&to(&["b"]), &typing(n)).await.unwrap();
        if last > 20_000 {
            break;
        }
    }
    assert!(gaps > 0, "20,000 words cannot all have waited");
}

/// N4: that something was not said is heard as a gap by all others, before what is said next.
pub async fn what_was_not_said_is_heard_as_a_gap<H: NodeBusHarness>() {
    let harness = H::start().await;
    let mut ends = Vec::new();
    for name in ["a", "b", "c"] {
        let bus = harness.node(&node(name)).await;
        let heard = bus.subscribe().await;
        ends.push((bus, heard));
    }
    ends[0].0.say_gap().await.unwrap();
    ends[0].0.broadcast(&typing(1)).await.unwrap();
    ends[1].0.send(&to(&["a"]), &typing(2)).await.unwrap();
    assert_eq!(next(&mut ends[0].1).await, typing(2), "nobody hears themselves");
    for end in &mut ends[1..] {
        assert_eq!(receive(&mut end.1).await, Heard::Gap);
        assert_eq!(next(&mut end.1).await, typing(1));
    }
}

/// One word of every kind, with the largest numbers and the strangest texts.
fn every_word() -> Vec<NodeMessage> {
    let context = EventContext {
        now: Timestamp(1_769_558_400_123),
        source: build::node(),
        trace_id: build::trace(),
    };
    let envelopes = every_event().into_iter().zip(1..).map(|(event, n)| {
        let id = EventId::new(i64::MAX - n).unwrap();
        Envelope::stored(id, event.schema_version(), &context, event)
    });
    let mut words: Vec<_> =
        envelopes.map(|envelope| NodeMessage::Event { envelope, message: None }).collect();
    let (user, agent) = (build::user("u1", 0).user_id, build::admin("a1"));
    let senders =
        [Sender::User(user.clone()), Sender::Agent(agent.clone()), Sender::System, Sender::Bot];
    for (sender, n) in senders.into_iter().zip(1..) {
        let NodeMessage::Event { envelope, .. } = words[0].clone() else { unreachable!() };
        let message = Message {
            msg_id: MsgId::new(i64::MAX - n).unwrap(),
            session_id: SessionId::new(i64::MAX).unwrap(),
            seq: Seq(i64::MAX),
            sender,
            client_msg_id: build::key(format!("k{n} \u{1F600}\"")),
            msg_type: if n % 2 == 0 { MessageType::Image } else { MessageType::Text },
            content: "退款 \u{1F600} \"'\\\n\t".into(),
            status: MessageStatus::Pending,
            create_time: Timestamp(1),
        };
        words.push(NodeMessage::Event { envelope, message: Some(Arc::new(message)) });
    }
    let session_id = SessionId::new(i64::MAX).unwrap();
    for status in [MessageStatus::Delivered, MessageStatus::Read, MessageStatus::Failed] {
        let msg_id = MsgId::new(i64::MAX - 1).unwrap();
        let push = Relayed::PeerAck { session_id, msg_id, seq: Seq(i64::MAX), status };
        words.push(pushed(Person::User(user.clone()), push));
    }
    for is_typing in [true, false] {
        let push = Relayed::Typing { session_id, is_typing };
        words.push(pushed(Person::Agent(agent.clone()), push));
    }
    let (to, push) = (Person::User(user.clone()), Relayed::OfflineNotice);
    words.push(NodeMessage::Push { to, push, trace_id: None });
    let push = Relayed::Read { session_id, seq: Seq(i64::MAX) };
    words.push(pushed(Person::User(user), push));
    let url = "https://shop.test/?q=退款#\u{1F600}".to_owned();
    let page = PageView::new(url, "\"'\\".into(), "zh-CN".into()).unwrap();
    let push = Relayed::Page { session_id, page: Arc::new(page), time: Timestamp(i64::MAX) };
    words.push(pushed(Person::Agent(agent), push));
    for (sessions, board) in [(BTreeSet::new(), true), (BTreeSet::from([session_id]), false)] {
        words.push(NodeMessage::Watching { node: build::node(), sessions, board });
    }
    words
}

/// Because of a frame.
fn pushed(to: Person, push: Relayed) -> NodeMessage {
    NodeMessage::Push { to, push, trace_id: Some(build::trace()) }
}

fn id_of(word: &NodeMessage) -> i64 {
    match word {
        NodeMessage::Push { push: Relayed::Typing { session_id, .. }, .. } => session_id.get(),
        other => panic!("only typing was said: {other:?}"),
    }
}

/// Words that say which they are.
fn typing(n: i64) -> NodeMessage {
    let to = Person::User(build::user("u1", 0).user_id);
    let session_id = SessionId::new(n).unwrap();
    pushed(to, Relayed::Typing { session_id, is_typing: true })
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn to(names: &[&str]) -> BTreeSet<NodeName> {
    names.iter().map(|name| node(name)).collect()
}

async fn receive(heard: &mut Receiver<Heard>) -> Heard {
    let heard = tokio::time::timeout(PATIENCE, heard.recv()).await;
    heard.expect("nothing was heard in time").expect("the wire lives")
}

async fn next(heard: &mut Receiver<Heard>) -> NodeMessage {
    loop {
        // A wire may report a gap when it begins; what follows is what was said.
        if let Heard::Message(word) = receive(heard).await {
            return word;
        }
    }
}
