//! The board shows the figures of all nodes, from events, and no more often than every two seconds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kefu_console::BoardFigures;
use kefu_core::ConnId;
use kefu_messaging::Push;
use kefu_testkit::build::{supervisor_caller, trace};

use super::{House, Node, clear};
use crate::common::{NOWHERE, agent, idle, pass, visitor};

const BOSS: u64 = 30;

async fn open(node: &Node) -> BoardFigures {
    node.scene.supervisor("boss", BOSS).await;
    let board = node.scene.desk.board(&supervisor_caller("boss"), ConnId(BOSS), true).await;
    idle().await;
    board.expect("shown")
}

fn boards(node: &Node) -> Vec<(f64, BoardFigures)> {
    let sent = node.scene.sent_to(BOSS).into_iter();
    sent.filter_map(|sent| match sent.push {
        Push::Board(figures) => Some((sent.second, figures.as_ref().clone())),
        _ => None,
    })
    .collect()
}

fn latest(node: &Node) -> BoardFigures {
    boards(node).pop().expect("a board").1
}

fn agents(figures: &BoardFigures) -> Vec<(&str, bool, u32, u32)> {
    let agent = |agent: &'_ kefu_console::BoardAgent| {
        (agent.online, agent.active_sessions, agent.max_sessions)
    };
    let named = figures.agents.iter().map(|of| (of.admin_id.as_str(), agent(of)));
    named.map(|(id, (online, active, max))| (id, online, active, max)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_board_shows_what_happens_on_other_nodes() {
    let house = House::build();
    let (a, b, c) = (house.node("a").await, house.node("b").await, house.node("c").await);
    a.scene.consult("before", 5).await;
    pass(10.0).await;
    let first = open(&c).await;
    assert_eq!((first.waiting, first.longest_wait.as_secs()), (1, 10));
    assert_eq!(first.arrivals.iter().sum::<u32>(), 1);
    assert_eq!((agents(&first), first.first_response), (vec![], None));

    b.scene.agent("a1", 10, 1).await;
    pass(5.0).await;
    assert_eq!((latest(&c).waiting, agents(&latest(&c))), (0, vec![("a1", true, 1, 1)]));
    let session = a.scene.consult("u1", 1).await.session_id.expect("open");
    pass(5.0).await;
    assert_eq!((latest(&c).waiting, latest(&c).arrivals.iter().sum::<u32>()), (1, 2));

    // Twenty seconds after it was opened an agent has answered the first.
    let before = b.scene.stores.sessions.list_owned(&kefu_testkit::build::admin("a1")).await;
    let before = before.expect("readable")[0].id;
    b.scene.say(&agent("a1"), 10, before, "hello").await;
    b.scene.say(&agent("a1"), 10, before, "again").await;
    pass(5.0).await;
    let response = latest(&c).first_response.expect("answered");
    assert_eq!((response.p50.as_secs(), response.p90.as_secs()), (20, 20));

    b.scene.desk.end(&agent("a1"), before, NOWHERE, &trace()).await.expect("ended");
    pass(5.0).await;
    assert_eq!((latest(&c).waiting, agents(&latest(&c))), (0, vec![("a1", true, 1, 1)]));
    b.scene.desk.agent_offline(&agent("a1"), true, NOWHERE, &trace()).await.expect("offline");
    pass(5.0).await;
    let figures = latest(&c);
    assert_eq!((figures.waiting, agents(&figures)), (1, vec![]));
    let since = figures.time.before(figures.longest_wait);
    let opened = a.scene.session(session).await.started_at;
    assert!(since.since(opened) < Duration::from_millis(5), "Z7: its own waiting time");
    a.scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(5.0).await;
    assert_eq!((latest(&c).waiting, latest(&c).longest_wait), (0, Duration::ZERO));
    assert_eq!(open(&b).await.first_response, latest(&c).first_response, "read, or heard");
}

#[tokio::test(start_paused = true)]
async fn many_changes_are_one_push_and_none_is_none() {
    let house = House::build();
    let (a, c) = (house.node("a").await, house.node("c").await);
    open(&c).await;
    clear(&[&c]);
    for n in 0..40_u64 {
        a.scene.consult(&format!("u{n}"), 100 + n).await;
        pass(0.25).await;
    }
    pass(3.0).await;
    let pushes = boards(&c);
    let gaps = pushes.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.clone().all(|gap| gap > 1.999), "{:?}", gaps.collect::<Vec<_>>());
    assert!((5..=7).contains(&pushes.len()), "{}", pushes.len());
    assert_eq!(latest(&c).waiting, 40);
    clear(&[&c]);
    pass(50.0).await;
    assert!(boards(&c).len() <= 1, "only the minute turned");

    let ended = c.scene.desk.board(&supervisor_caller("boss"), ConnId(BOSS), false).await;
    assert_eq!(ended.expect("shown").waiting, 40);
    clear(&[&c]);
    a.scene.consult("late", 99).await;
    pass(70.0).await;
    assert_eq!(boards(&c).len(), 0, "nobody looks");
}

/// What a lost word left wrong is right a minute later (A1).
#[tokio::test(start_paused = true)]
async fn the_account_is_put_right() {
    let house = House::build();
    let (a, c) = (house.node("a").await, house.node("c").await);
    open(&c).await;
    a.mute.0.store(true, Ordering::SeqCst);
    a.scene.consult("unheard", 1).await;
    a.mute.0.store(false, Ordering::SeqCst);
    pass(61.0).await;
    assert_eq!(latest(&c).waiting, 1);
    assert_eq!(latest(&c).arrivals.iter().sum::<u32>(), 1);
}
