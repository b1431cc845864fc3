//! Pushes and their retries in paused time (CC-06, M2, M3, 2.5).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{AdminId, ConnId, ManualClock, MsgId, Person, UserId};
use kefu_memory::MemoryWorld;
use kefu_messaging::{
    BatchConfig, Delivery, Fresh, Message, MessageStatus, MessageStore, Parties, Push, Pusher,
    Reach, Receipt, ReceiptRequest, Receipts, Reported, RetrySchedule,
};
use kefu_session::Session;
use kefu_testkit::build::{agent_caller, from_agent, from_user, receipt, user_caller};
use kefu_testkit::{Flaky, World};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What reached somebody: when, whom, what, and who was left out.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    second: f64,
    to: Person,
    push: Push,
    except: Option<ConnId>,
}

struct Recorder {
    start: Instant,
    connected: Mutex<HashMap<Person, usize>>,
    sent: Mutex<Vec<Sent>>,
}

#[async_trait]
impl Pusher for Recorder {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        let connections = self.connected.lock().expect("no panic").get(to).copied().unwrap_or(0);
        if connections > 0 {
            let second = self.start.elapsed().as_millis() as f64 / 1_000.0;
            let sent = Sent { second, to: to.clone(), push: push.clone(), except };
            self.sent.lock().expect("no panic").push(sent);
        }
        Reach { connections }
    }

    async fn push_to_consoles(&self, _: &Push) {}
}

struct Scene {
    world: World,
    flaky: Arc<Flaky<dyn MessageStore>>,
    people: Arc<Recorder>,
    delivery: Delivery,
    receipts: Arc<Receipts>,
    session: Session,
    agent: AdminId,
}

impl Scene {
    /// `u1` talks to `a1`, both connected once.
    async fn start() -> Self {
        let stores = MemoryWorld::new(Arc::new(ManualClock::default())).stores();
        let world = World::new(stores);
        let agent = world.agent("a1", 5).await;
        let session = world.open("u1", 0).await;
        let session = world.claim(&agent, session.id).await.expect("claimed");
        let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
        let people = Arc::new(Recorder {
            start: Instant::now(),
            connected: Mutex::default(),
            sent: Mutex::default(),
        });
        let (delivery, receipts) = Delivery::start(
            Arc::clone(&flaky) as Arc<dyn MessageStore>,
            Arc::clone(&world.stores.sessions),
            Arc::clone(&people) as Arc<dyn Pusher>,
            RetrySchedule::default(),
            BatchConfig::default(),
            &TaskTracker::new(),
            &CancellationToken::new(),
        );
        let scene = Self { world, flaky, people, delivery, receipts, session, agent };
        scene.connect(scene.user(), 1);
        scene.connect(scene.owner(), 1);
        scene
    }

    fn user(&self) -> Person {
        Person::User(self.user_id().clone())
    }

    fn user_id(&self) -> &UserId {
        &self.session.user.user_id
    }

    fn owner(&self) -> Person {
        Person::Agent(self.agent.clone())
    }

    fn connect(&self, person: Person, connections: usize) {
        self.people.connected.lock().expect("no panic").insert(person, connections);
    }

    async fn say(&self, key: &str) -> Arc<Message> {
        let sender = from_user(self.user_id());
        self.world.say(self.session.id, &sender, key, "hi").await
    }

    /// The first push of a message of the user's, from connection 7.
    async fn deliver(&self, message: &Arc<Message>) {
        let session = self.world.session(self.session.id).await;
        let fresh = Fresh { message: Arc::clone(message), origin: Some(ConnId(7)) };
        self.delivery.deliver(&fresh, &Parties::from(&session)).await;
    }

    async fn acknowledge(&self, message: &Message, kind: Receipt) {
        let request = receipt(&agent_caller(&self.agent), message.msg_id, kind);
        self.receipts.report(request).await.expect("taken");
    }

    async fn status(&self, id: MsgId) -> MessageStatus {
        self.world.stores.messages.find(id).await.expect("readable").expect("stored").status
    }

    fn sent(&self) -> Vec<Sent> {
        self.people.sent.lock().expect("no panic").clone()
    }

    /// When `person` was pushed another's message, and as which attempt.
    fn pushes_to(&self, person: &Person) -> Vec<(f64, u32)> {
        self.sent()
            .iter()
            .filter_map(|sent| match &sent.push {
                Push::Message { attempt, own: false, .. } if sent.to == *person => {
                    Some((sent.second, *attempt))
                }
                _ => None,
            })
            .collect()
    }

    fn peer_acks(&self) -> Vec<(f64, Person, MessageStatus)> {
        self.sent()
            .into_iter()
            .filter_map(|sent| match sent.push {
                Push::PeerAck { status, .. } => Some((sent.second, sent.to, status)),
                _ => None,
            })
            .collect()
    }
}

async fn pass(seconds: f64) {
    // tidy: time is paused
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn without_an_ack_pushes_come_at_0_1_3_7_and_failed_at_11() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(10.9).await;
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Pending);
    pass(30.0).await;
    let pushes = scene.pushes_to(&scene.owner());
    assert_eq!(pushes, [(0.0, 1), (1.0, 2), (3.0, 3), (7.0, 4)], "CC-06, M3");
    assert_eq!(scene.peer_acks(), [(11.0, scene.user(), MessageStatus::Failed)], "M3");
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn messages_that_fail_together_share_their_commits() {
    let scene = Scene::start().await;
    let mut ids = Vec::new();
    for n in 0..100 {
        let message = scene.say(&format!("k{n}")).await;
        scene.deliver(&message).await;
        ids.push(message.msg_id);
    }
    pass(30.0).await;
    for id in ids {
        assert_eq!(scene.status(id).await, MessageStatus::Failed);
    }
    assert_eq!(scene.peer_acks().len(), 100, "M3: one each");
    assert!(scene.flaky.writes() < 20, "M3: in groups: {}", scene.flaky.writes());
}

#[tokio::test(start_paused = true)]
async fn an_ack_after_the_second_push_ends_the_pushes() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(1.5).await;
    scene.acknowledge(&message, Receipt::Delivered).await;
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.owner()), [(0.0, 1), (1.0, 2)], "2.5");
    assert_eq!(scene.peer_acks(), [(1.5, scene.user(), MessageStatus::Delivered)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_delivered_is_never_pushed_again_even_if_nobody_told_the_clockwork() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    // Committed past the service, as by another node: the clockwork hears nothing.
    let by = agent_caller(&scene.agent);
    let report = receipt(&by, message.msg_id, Receipt::Delivered);
    scene.world.report(&[report]).await.expect("recorded");
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.owner()), [(0.0, 1)], "2.5: the status is read first");
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Delivered);
}

#[tokio::test(start_paused = true)]
async fn without_any_connection_it_stays_pending_without_attempts() {
    let scene = Scene::start().await;
    scene.connect(scene.owner(), 0);
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.owner()), []);
    assert_eq!(scene.peer_acks(), []);
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Pending, "M3");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_who_leaves_between_pushes_is_waited_for() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(1.5).await;
    scene.connect(scene.owner(), 0);
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.owner()), [(0.0, 1), (1.0, 2)]);
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Pending, "M3: not failed");
}

#[tokio::test(start_paused = true)]
async fn after_a_transfer_the_retry_goes_to_the_new_owner() {
    let scene = Scene::start().await;
    let b = scene.world.agent("b1", 5).await;
    scene.connect(Person::Agent(b.clone()), 1);
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(0.5).await;
    let by = agent_caller(&scene.agent);
    scene.world.transfer(&by, scene.session.id, &b).await.expect("transferred");
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.owner()), [(0.0, 1)], "A3: nothing more");
    let expected = [(1.0, 2), (3.0, 3), (7.0, 4)];
    assert_eq!(scene.pushes_to(&Person::Agent(b)), expected, "M2: who holds the side now");
}

#[tokio::test(start_paused = true)]
async fn an_agents_unanswered_message_fails_to_whoever_holds_the_agents_side() {
    let scene = Scene::start().await;
    let b = scene.world.agent("b1", 5).await;
    scene.connect(Person::Agent(b.clone()), 1);
    let sender = from_agent(&scene.agent);
    let message = scene.world.say(scene.session.id, &sender, "k", "hi").await;
    scene.deliver(&message).await;
    pass(2.0).await;
    let by = agent_caller(&scene.agent);
    scene.world.transfer(&by, scene.session.id, &b).await.expect("transferred");
    pass(30.0).await;
    assert_eq!(scene.pushes_to(&scene.user()).len(), 4, "the user is still the receiver");
    assert_eq!(scene.peer_acks(), [(11.0, Person::Agent(b), MessageStatus::Failed)], "M2");
}

#[tokio::test(start_paused = true)]
async fn a_failed_message_is_delivered_when_the_receiver_turns_up() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(12.0).await;
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Failed);
    scene.acknowledge(&message, Receipt::Read).await;
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Read);
    let told: Vec<_> = scene.peer_acks().into_iter().map(|(_, _, status)| status).collect();
    assert_eq!(told, [MessageStatus::Failed, MessageStatus::Read], "M3: failed is not final");
}

#[tokio::test(start_paused = true)]
async fn a_message_in_a_connect_answer_counts_as_pushed_once() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.delivery.handed_over(message.msg_id);
    pass(30.0).await;
    let expected = [(1.0, 2), (3.0, 3), (7.0, 4)];
    assert_eq!(scene.pushes_to(&scene.owner()), expected, "M4, M3");
    assert_eq!(scene.peer_acks(), [(11.0, scene.user(), MessageStatus::Failed)]);
}

#[tokio::test(start_paused = true)]
async fn the_senders_other_devices_get_it_once_with_the_key_and_the_origin_does_not() {
    let scene = Scene::start().await;
    scene.connect(scene.user(), 2);
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(30.0).await;
    let own: Vec<_> = scene
        .sent()
        .into_iter()
        .filter(|sent| matches!(sent.push, Push::Message { own: true, .. }))
        .map(|sent| (sent.second, sent.to, sent.except))
        .collect();
    assert_eq!(own, [(0.0, scene.user(), Some(ConnId(7)))], "M2");
}

#[tokio::test(start_paused = true)]
async fn a_former_owner_gets_no_echo() {
    let scene = Scene::start().await;
    let b = scene.world.agent("b1", 5).await;
    let sender = from_agent(&scene.agent);
    let message = scene.world.say(scene.session.id, &sender, "k", "hi").await;
    let by = agent_caller(&scene.agent);
    scene.world.transfer(&by, scene.session.id, &b).await.expect("transferred");
    scene.deliver(&message).await;
    assert!(scene.sent().iter().all(|sent| sent.to == scene.user()), "A3");
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_a_retry_keeps_its_place() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.deliver(&message).await;
    pass(0.5).await;
    scene.flaky.cut();
    pass(1.0).await;
    scene.flaky.mend();
    pass(30.0).await;
    let expected = [(0.0, 1), (2.0, 2), (4.0, 3), (8.0, 4)];
    assert_eq!(scene.pushes_to(&scene.owner()), expected, "N5: it heals without a restart");
    assert_eq!(scene.status(message.msg_id).await, MessageStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_peer_ack_leaves_only_after_its_commit() {
    let scene = Scene::start().await;
    let message = scene.say("k").await;
    scene.flaky.cut();
    let request = receipt(&agent_caller(&scene.agent), message.msg_id, Receipt::Read);
    assert!(scene.receipts.report(request.clone()).await.is_err());
    assert_eq!(scene.peer_acks(), [], "M3");
    scene.flaky.mend();
    scene.receipts.report(request.clone()).await.expect("taken");
    scene.receipts.report(request).await.expect("taken again");
    assert_eq!(scene.peer_acks(), [(0.0, scene.user(), MessageStatus::Read)], "once");
}

#[tokio::test(start_paused = true)]
async fn a_cumulative_ack_gives_one_peer_ack_a_message_in_order() {
    let scene = Scene::start().await;
    let mut messages = Vec::new();
    for key in ["1", "2", "3"] {
        messages.push(scene.say(key).await);
    }
    let request = ReceiptRequest {
        by: Reported::By(agent_caller(&scene.agent)),
        msg_id: messages[2].msg_id,
        receipt: Receipt::Read,
        cumulative: true,
        origin: None,
        trace_id: None,
    };
    scene.receipts.report(request).await.expect("taken");
    let told: Vec<_> = scene
        .sent()
        .into_iter()
        .filter_map(|sent| match sent.push {
            Push::PeerAck { msg_id, .. } => Some(msg_id),
            _ => None,
        })
        .collect();
    assert_eq!(told, messages.iter().map(|message| message.msg_id).collect::<Vec<_>>());
    let foreign = receipt(&user_caller(scene.user_id()), messages[0].msg_id, Receipt::Read);
    assert!(scene.receipts.report(foreign).await.is_err(), "one's own message");
}
