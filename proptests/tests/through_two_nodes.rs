//! The properties that speak of users and agents, asked of several nodes at once: desks of their own over
//! one PostgreSQL and one Redis, each with a clock that goes its own way. 2.3 is beside its other parts,
//! in `assignment_atomicity.rs`.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kefu_assignment::Origin;
use kefu_core::{AdminId, PageLimit, Person, SessionId};
use kefu_desk::DeskError;
use kefu_proptests::broken::{
    CarelessMessages, CarelessSessions, LineFlaw, LoadFlaw, OpenMistake, PendingFlaw, SendMistake,
    line, load, pending,
};
use kefu_proptests::nodes::Nodes;
use kefu_proptests::{Violation, caught, ensure, sound};
use kefu_session::Status;
use kefu_testkit::check::Ledger;
use kefu_testkit::{build, race};

/// The statements of the specification, as written.
const MESSAGES_OF: &str = "SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = ?";
const OPEN_OF: &str = "SELECT COUNT(*) FROM cg_chat_session WHERE user_id = ? AND status IN (0,1)";
const CONTENTS: &str = "SELECT content FROM cg_chat_message WHERE session_id = ? ORDER BY id";

// 2.1

const REPEATS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_through_two_nodes_is_one_message() -> Result<(), Violation> {
    check_one_key(Nodes::start(2).await).await?;
    for (mistake, because) in [
        (SendMistake::ForgetsKeys, "were told"),
        (SendMistake::AnswersRepeatsAnew, "were told"),
        (SendMistake::AcksWithoutStoring, "were told"),
    ] {
        let broken =
            Nodes::broken(2, |_, stores, clock| CarelessMessages::over(stores, mistake, clock));
        let broken = broken.await.without_constraints().await;
        caught(check_one_key(broken).await, because)?;
    }
    Ok(())
}

async fn check_one_key(nodes: Nodes) -> Result<(), Violation> {
    let nodes = Arc::new(nodes);
    let session = nodes.at(0).open("u0", 0, 1).await?;
    let sent = race(REPEATS, |number| {
        let nodes = Arc::clone(&nodes);
        async move { nodes.at(number).send("u0", "k", "hello").await }
    });
    let (mut told, mut fresh) = (BTreeSet::new(), 0);
    for stored in sent.await {
        let stored = stored?;
        told.insert(stored.message.msg_id);
        fresh += usize::from(!stored.duplicate);
    }
    ensure(told.len() == 1 && fresh == 1, || format!("{fresh} of {told:?} were told as new"))?;
    for id in told {
        let count = nodes.sql.count(MESSAGES_OF, id.get()).await;
        ensure(count == 1, || format!("{count} of {id} were told"))?;
    }
    sound(&Ledger::collect(&nodes.stores, [session], []).await?)
}

// 2.2

/// Connects of the one user, and of others meanwhile.
const CONNECTS: usize = 10;
const OTHERS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_connects_through_two_nodes_are_one_session() -> Result<(), Violation> {
    check_ten_connects(Nodes::start(2).await).await?;
    for (mistake, because) in [
        (OpenMistake::DecidesOutsideLock, "open sessions of u0"),
        (OpenMistake::ForgetsOpen, "open sessions of u0"),
    ] {
        let broken = Nodes::broken(2, |_, stores, _| CarelessSessions::over(stores, mistake));
        let broken = broken.await.without_constraints().await;
        caught(check_ten_connects(broken).await, because)?;
    }
    let mistake = OpenMistake::AnnouncesNothing;
    let broken = Nodes::broken(2, |_, stores, _| CarelessSessions::over(stores, mistake)).await;
    caught(check_ten_connects(broken).await, "announced 0 times")
}

async fn check_ten_connects(nodes: Nodes) -> Result<(), Violation> {
    let nodes = Arc::new(nodes);
    let opened = race(CONNECTS + OTHERS, |number| {
        let nodes = Arc::clone(&nodes);
        // With a balance that changes, so that later ones refresh what the first one opened.
        let user = if number < CONNECTS { 0 } else { number };
        let conn = number as u64;
        async move { nodes.at(number).open(&format!("u{user}"), conn as i64, conn).await }
    });
    let opened = opened.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_one: BTreeSet<_> = opened[..CONNECTS].iter().copied().collect();
    let count = nodes.sql.count(OPEN_OF, "u0").await;
    ensure(of_one.len() == 1 && count == 1, || {
        format!("{} told, {count} open sessions of u0", of_one.len())
    })?;
    let announced = "SELECT COUNT(*) FROM cg_chat_outbox \
                     WHERE event_type = 'session_opened' AND key = ?";
    let announced = nodes.sql.count(announced, format!("session:{}", opened[0])).await;
    ensure(announced == 1, || format!("it is announced {announced} times"))?;
    sound(&Ledger::collect(&nodes.stores, opened, []).await?)
}

// 2.4

const NUMBERED: usize = 100;
const SENDERS: usize = 10;
/// Five minutes, by which the nodes' clocks part.
const STEP_MS: i64 = 300_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_numbered_messages_through_two_nodes_keep_their_numbers() -> Result<(), Violation>
{
    check_numbered(&Nodes::start(2).await).await?;
    for (mistake, because) in [
        // An id that another node gave too is decided anew (ADR 0016); those of the slower clock are in
        // front (T1).
        (SendMistake::TakesIdsFromClock, "ORDER BY id gives"),
        (SendMistake::TakesTimeFromClock, "is earlier than the one before"),
    ] {
        let broken =
            Nodes::broken(2, |_, stores, clock| CarelessMessages::over(stores, mistake, clock));
        let broken = broken.await.without_constraints().await;
        caught(check_numbered(&broken).await, because)?;
    }
    Ok(())
}

async fn check_numbered(nodes: &Nodes) -> Result<(), Violation> {
    let session = nodes.at(0).open("u0", 0, 1).await?;
    for number in 1..=NUMBERED {
        let node = nodes.at(number);
        node.send("u0", &number.to_string(), &number.to_string()).await?;
        // Each goes back when the other goes forward.
        node.world.clock.step_wall(if number % 4 < 2 { STEP_MS } else { -STEP_MS });
    }
    let contents = nodes.sql.texts(CONTENTS, session.get()).await;
    let expected: Vec<_> = (1..=NUMBERED).map(|number| number.to_string()).collect();
    ensure(contents == expected, || format!("ORDER BY id gives {contents:?}"))?;
    check_times(nodes, session).await
}

/// `create_time` agrees with the positions.
async fn check_times(nodes: &Nodes, session: SessionId) -> Result<(), Violation> {
    let messages = nodes.at(0).world.history(session).await;
    let early = messages.windows(2).find(|pair| pair[1].create_time < pair[0].create_time);
    ensure(early.is_none(), || format!("one is earlier than the one before: {early:?}"))?;
    sound(&Ledger::collect(&nodes.stores, [session], []).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_senders_through_two_nodes_keep_their_own_order() -> Result<(), Violation> {
    check_senders(Nodes::start(2).await).await?;
    let mistake = SendMistake::AcksWithoutStoring;
    let broken =
        Nodes::broken(2, |_, stores, clock| CarelessMessages::over(stores, mistake, clock)).await;
    caught(check_senders(broken).await, "0 of 100")
}

/// Each of ten sends ten numbered messages one after the other, each through the next node.
async fn check_senders(nodes: Nodes) -> Result<(), Violation> {
    let nodes = Arc::new(nodes);
    let session = nodes.at(0).open("u0", 0, 1).await?;
    let done = race(SENDERS, |sender| {
        let nodes = Arc::clone(&nodes);
        async move {
            for number in 0..NUMBERED / SENDERS {
                let (node, text) = (nodes.at(sender + number), format!("{sender}:{number}"));
                node.send("u0", &text, &text).await?;
                node.world.clock.step_wall(if number % 4 < 2 { STEP_MS } else { -STEP_MS });
            }
            Ok::<_, Violation>(())
        }
    });
    done.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let contents = nodes.sql.texts(CONTENTS, session.get()).await;
    ensure(contents.len() == NUMBERED, || format!("{} of {NUMBERED} are stored", contents.len()))?;
    for sender in 0..SENDERS {
        let own = contents.iter().filter_map(|text| text.strip_prefix(&format!("{sender}:")));
        let in_order = own.eq((0..NUMBERED / SENDERS).map(|number| number.to_string()));
        ensure(in_order, || format!("sender {sender} is out of order: {contents:?}"))?;
    }
    check_times(&nodes, session).await
}

// 2.6

const AGENTS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_agents_share_a_hundred_users_through_three_nodes() -> Result<(), Violation> {
    check_ten_agents(Nodes::start(3).await).await?;
    // Who takes everybody for idle plans for agents who are busier by then, and the lock lets none of
    // those plans pass (Z1): nobody gets a second session.
    for (flaw, because) in [
        (LoadFlaw::LoadKept, "still waits"),
        (LoadFlaw::CapOffByOne, "cap:"),
        (LoadFlaw::LoadIgnored, "for good"),
    ] {
        let broken = Nodes::broken(3, |_, stores, _| load(stores, flaw)).await;
        caught(check_ten_agents(broken).await, because)?;
    }
    Ok(())
}

async fn check_ten_agents(nodes: Nodes) -> Result<(), Violation> {
    let nodes = Arc::new(nodes);
    for number in 0..AGENTS {
        nodes.at(number).staff(&format!("a{number}"), 10, 1_000 + number as u64).await?;
    }
    let mut sessions = Vec::new();
    // Half-way the cap cannot be what makes them equal.
    for (round, each) in [(0, "5"), (1, "10")] {
        let opened = race(50, |number| {
            let (nodes, user) = (Arc::clone(&nodes), round * 50 + number);
            async move { nodes.at(user).open(&format!("u{user}"), 0, user as u64).await }
        });
        sessions.extend(opened.await.into_iter().collect::<Result<Vec<_>, _>>()?);
        nodes.settle().await?;
        let counts = "select cast(count(*) as text) from cg_chat_session where status = ? \
                      group by admin_id";
        let counts = nodes.sql.texts(counts, 1).await;
        ensure(counts == [each; AGENTS], || format!("spread: the table counts {counts:?}"))?;
    }
    let late = nodes.at(1).open("late", 1_000, 2_000).await?;
    nodes.settle().await?;
    let waits = nodes.at(2).world.session(late).await.status == Status::Waiting;
    ensure(waits, || "cap: the 101st is served beyond the cap".into())?;
    end(&nodes, 2, sessions[17]).await.expect("ended");
    nodes.settle().await?;
    let served = nodes.at(0).world.session(late).await.status == Status::Active;
    ensure(served, || "the 101st still waits beside an agent with room".into())?;
    sessions.push(late);
    sound(&Ledger::collect(&nodes.stores, sessions, agents()).await?)
}

fn agents() -> impl Iterator<Item = AdminId> {
    (0..AGENTS).map(|number| build::admin(&format!("a{number}")))
}

/// A supervisor ends a session through that node.
async fn end(nodes: &Nodes, number: usize, session: SessionId) -> Result<(), DeskError> {
    let (boss, desk) = (build::supervisor_caller("boss"), &nodes.at(number).desk);
    desk.end(&boss, session, Origin(None), &build::trace()).await.map(drop)
}

// 2.7

const UNHEARD: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_messages_to_nobody_through_two_nodes_are_pending() -> Result<(), Violation> {
    check_fifty_messages(&Nodes::start(2).await).await?;
    for (flaw, because) in [
        (PendingFlaw::DeliveredAtAppend, "the table counts (50, 0)"),
        (PendingFlaw::AnsweredUnwritten, "the table counts (44, 44)"),
    ] {
        let broken = Nodes::broken(2, |_, stores, _| pending(stores, flaw)).await;
        caught(check_fifty_messages(&broken).await, because)?;
    }
    let broken = Nodes::broken(2, |_, stores, _| line(stores, LineFlaw::LeftBeforeCommit)).await;
    let checked = check_fifty_messages(&broken).await;
    caught(checked, "a place in the line")
}

async fn check_fifty_messages(nodes: &Nodes) -> Result<(), Violation> {
    let trace = build::trace();
    // One left through the other node, one lost its connection.
    let [left, gone] = ["left", "gone"].map(build::admin).map(|id| build::agent_caller(&id));
    nodes.at(0).staff("left", 10, 1).await?;
    let offline = nodes.at(1).desk.agent_offline(&left, false, Origin(None), &trace).await;
    ensure(offline.is_ok(), || format!("{offline:?}"))?;
    nodes.at(1).staff("gone", 10, 2).await?;
    nodes.at(1).desk.disconnect(&gone, kefu_core::ConnId(2), &trace).await;
    let session = nodes.at(0).open("u1", 0, 3).await?;
    let mut sent = Vec::new();
    for number in 1..=UNHEARD {
        let text = number.to_string();
        sent.push(nodes.at(number).send("u1", &text, &text).await?.message.msg_id);
    }
    let all = "select count(*) from cg_chat_message where session_id = ?";
    let pending = format!("{all} and status = 'pending'");
    let in_table =
        (nodes.sql.count(all, session.get()).await, nodes.sql.count(&pending, session.get()).await);
    ensure(in_table == (50, 50), || format!("the table counts {in_table:?}"))?;
    check_in_line(nodes, session).await?;
    // Somebody comes, whose pass has not committed; then it has.
    nodes.at(1).world.agent("late", 10).await;
    for node in nodes.iter() {
        node.world.stores.line.front(kefu_core::limit::DRAIN_HEADS).await?;
    }
    check_in_line(nodes, session).await?;
    nodes.settle().await?;
    let owner = nodes.at(0).world.session(session).await.admin_id;
    ensure(owner == Some(build::admin("late")), || format!("it is with {owner:?}"))?;
    let late = Person::Agent(build::admin("late"));
    let owed = nodes.stores.messages.list_undelivered(&late, None, PageLimit::MAX).await?;
    let owed: Vec<_> = owed.items.iter().map(|message| message.msg_id).collect();
    ensure(owed == sent, || format!("the agent gets {} of {}", owed.len(), sent.len()))?;
    sound(
        &Ledger::collect(&nodes.stores, [session], ["left", "gone", "late"].map(build::admin))
            .await?,
    )
}

async fn check_in_line(nodes: &Nodes, session: SessionId) -> Result<(), Violation> {
    for node in nodes.iter() {
        let place = node.world.stores.line.place(session).await?;
        ensure(place.is_some(), || "who waits has not a place in the line".to_owned())?;
    }
    Ok(())
}

// 2.8

const BALANCES: [i64; 5] = [100, 500, 200, 500, 300];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_visitors_through_two_nodes_are_served_by_balance() -> Result<(), Violation> {
    check_five_visitors(&Nodes::start(2).await).await?;
    for flaw in [LineFlaw::ByArrival, LineFlaw::NewestTieFirst, LineFlaw::Ascending] {
        let broken = Nodes::broken(2, |_, stores, _| line(stores, flaw)).await;
        caught(check_five_visitors(&broken).await, "order: served")?;
    }
    Ok(())
}

async fn check_five_visitors(nodes: &Nodes) -> Result<(), Violation> {
    for (number, balance) in BALANCES.into_iter().enumerate() {
        // The two of 500 come through different nodes.
        nodes.at(number / 2).open(&format!("u{number}"), balance, number as u64).await?;
        nodes.iter().for_each(|node| node.world.clock.advance(Duration::from_secs(1)));
    }
    let order = "select user_id from cg_chat_session where status = ? order by balance desc, id";
    let users = nodes.sql.texts(order, 0).await;
    ensure(users == ["u1", "u3", "u4", "u2", "u0"], || format!("order: stored as {users:?}"))?;
    nodes.at(1).staff("a1", 1, 10).await?;
    let agent = build::admin("a1");
    let mut served = Vec::new();
    for number in 0..BALANCES.len() {
        nodes.settle().await?;
        let owned = nodes.stores.sessions.list_owned(&agent).await?;
        let Some(session) = owned.first() else { break };
        served.push(session.user.name.clone());
        let ended = end(nodes, number, session.id).await;
        ensure(ended.is_ok(), || format!("{ended:?}"))?;
    }
    // 500 (first), 500 (second), 300, 200, 100.
    ensure(served == ["u1", "u3", "u4", "u2", "u0"], || format!("order: served {served:?}"))
}
