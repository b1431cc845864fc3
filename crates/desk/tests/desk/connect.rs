//! Connecting and leaving (S1, L2, Z7, P1).

use std::sync::Arc;

use kefu_assignment::Origin;
use kefu_core::{ConnId, ErrorCode, Person};
use kefu_desk::Intent;
use kefu_events::Event;
use kefu_messaging::Push;
use kefu_session::Status;
use kefu_testkit::build::{admin, supervisor_caller, trace, user};
use kefu_testkit::race;

use crate::common::{NOWHERE, Scene, agent, idle, kind, visitor};

#[tokio::test(start_paused = true)]
async fn the_answer_to_consult_precedes_the_assignment() {
    let scene = Scene::start();
    scene.agent("a1", 10, 5).await;
    let answer = scene.consult("u1", 1).await;
    let view = answer.session.expect("opened");
    assert_eq!(answer.session_id, Some(view.session.id));
    assert_eq!((view.session.status, view.agent), (Status::Waiting, None), "S1: never precedes");
    assert_eq!(view.session.source, "shop");
    idle().await;
    assert_eq!(scene.kinds(1), ["assigned"], "S1: follows");
    assert_eq!(scene.kinds(10), ["session_new"]);
    let again = scene.consult("u1", 1).await;
    assert_eq!(again.session_id, Some(view.session.id), "S1: the open one");
    assert_eq!(again.session.and_then(|view| view.agent).map(|a| a.admin_id), Some(admin("a1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_connects_at_once_make_one_session() {
    let scene = Arc::new(Scene::start());
    let answers = race(10, |n| {
        let scene = Arc::clone(&scene);
        async move { scene.consult("u1", n as u64).await.session_id }
    })
    .await;
    assert!(answers[0].is_some() && answers.iter().all(|id| *id == answers[0]), "S1");
    let everything = kefu_core::Timestamp(i64::MAX);
    let rows = scene.stores.outbox.list_unconfirmed(everything, None, 100).await;
    let opened = rows.expect("readable").into_iter();
    let opened = opened.filter(|row| matches!(row.event, Event::SessionOpened { .. })).count();
    assert!(opened <= 1, "S1: announced once");
    assert_eq!(scene.stores.line.front(10).await.expect("readable").total, 1);
}

#[tokio::test(start_paused = true)]
async fn ten_connects_of_one_user_show_the_agent_one_session() {
    let scene = Scene::start();
    scene.agent("a1", 20, 5).await;
    for conn in 1..=10 {
        scene.consult("u1", conn).await;
        idle().await;
    }
    let offers = scene.pushes(20).iter().filter(|p| matches!(p, Push::SessionNew(_))).count();
    assert_eq!(offers, 1, "S1");
}

#[tokio::test(start_paused = true)]
async fn resume_never_opens_and_shows_the_latest_ended_session() {
    let scene = Scene::start();
    let nothing = scene.resume("u1", 1).await;
    assert!(nothing.session_id.is_none() && nothing.session.is_none());

    let mut ended = Vec::new();
    for _ in 0..2 {
        let id = scene.consult("u1", 1).await.session_id.expect("open");
        scene.desk.end(&visitor("u1"), id, NOWHERE, &trace()).await.expect("ended");
        ended.push(id);
    }
    let answer = scene.resume("u1", 1).await;
    assert_eq!(answer.session_id, None, "S1");
    let view = answer.session.expect("the latest");
    assert_eq!((view.session.id, view.session.status), (ended[1], Status::Ended), "S1");
    assert_ne!(scene.consult("u1", 1).await.session_id, Some(ended[1]), "S2: a new one");
}

#[tokio::test(start_paused = true)]
async fn consult_refreshes_the_balance_while_waiting_only() {
    let scene = Scene::start();
    let id = scene.consult("u1", 1).await.session_id.expect("open");
    let richer = kefu_core::Caller::User(user("u1", 700));
    scene.connect(&richer, 1, Intent::Consult, &[]).await.expect("connected");
    assert_eq!(scene.session(id).await.priority, 700, "refreshed");
    scene.agent("a1", 10, 1).await;
    idle().await;
    let richest = kefu_core::Caller::User(user("u1", 900));
    scene.connect(&richest, 1, Intent::Consult, &[]).await.expect("connected");
    assert_eq!(scene.session(id).await.priority, 700, "frozen");
}

#[tokio::test(start_paused = true)]
async fn the_eleventh_connection_of_a_person_is_refused_and_leaves_no_trace() {
    let scene = Scene::start();
    for conn in 1..=10 {
        scene.consult("u1", conn).await;
    }
    let refused = scene.connect(&visitor("u1"), 11, Intent::Consult, &[]).await;
    assert_eq!(refused.expect_err("refused").code(), ErrorCode::RateLimited, "L2");
    scene.consult("u1", 3).await;
    scene.leave(&visitor("u1"), 3).await;
    scene.consult("u1", 11).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_sockets_may_go_without_anybody_noticing() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a1", 11, 0).await;
    let before = scene.stores.agents.find(&admin("a1")).await.expect("readable");
    scene.leave(&agent("a1"), 10).await;
    assert_eq!(scene.stores.agents.find(&admin("a1")).await.expect("readable"), before, "Z7");

    scene.leave(&agent("a1"), 11).await;
    let gone = scene.agent_row("a1").await;
    assert_eq!((gone.live, gone.gone_since), (false, Some(scene.clock.now())));
    assert!(scene.session(session).await.is_owned_by(&admin("a1")), "Z7: not an end");

    let back = scene.agent("a1", 12, 0).await;
    assert_eq!(back.owned.len(), 1, "Z7: a reload keeps all sessions");
    let live = scene.agent_row("a1").await;
    assert!(live.is_eligible() && live.live_gen == gone.live_gen + 1);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_connects_without_becoming_an_agent() {
    let scene = Scene::start();
    let caller = supervisor_caller("s1");
    let answer = scene.connect(&caller, 30, Intent::Consult, &[]).await.expect("connected");
    assert!(answer.session_id.is_none() && answer.owned.is_empty());
    assert_eq!(scene.stores.agents.find(&admin("s1")).await, Ok(None));
    scene.consult("u1", 1).await;
    idle().await;
    let got: Vec<_> = scene.sent_to(30).iter().map(|sent| kind(&sent.push)).collect();
    assert_eq!(got, ["queue_list"], "consoles see the line");
    scene.leave(&caller, 30).await;
    let person = Person::Agent(admin("s1"));
    assert_eq!(scene.coordination.ports().presence.count(&person).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn an_agents_answer_shows_each_session_with_what_is_unread() {
    let scene = Scene::start();
    let session = scene.talking().await;
    for n in 0..3 {
        scene.say(&visitor("u1"), 1, session, &format!("k{n}")).await;
    }
    scene.people.remove(ConnId(10));
    let answer = scene.agent("a1", 11, 0).await;
    let [owned] = &answer.owned[..] else { panic!("one session: {answer:?}") };
    assert_eq!((owned.view.session.id, owned.unread_count), (session, 3));
    assert_eq!(answer.unread.len(), 3);
    assert!(owned.view.agents_online);
    assert_eq!(answer.served[&session], owned.view.session.last_seq);

    scene.desk.agent_offline(&agent("a1"), false, NOWHERE, &trace()).await.expect("offline");
    let answer = scene.agent("a1", 11, 0).await;
    assert!(!answer.owned[0].view.agents_online, "nobody takes new sessions");
}

#[tokio::test(start_paused = true)]
async fn an_agents_other_devices_learn_of_a_change_and_its_origin_is_answered() {
    let scene = Scene::start();
    scene.agent("a1", 10, 0).await;
    scene.agent("a1", 11, 0).await;
    idle().await;
    scene.people.log().clear();
    let origin = Origin(Some(ConnId(10)));
    scene.desk.agent_online(&agent("a1"), 3, origin, &trace()).await.expect("online");
    idle().await;
    let status = |conn| {
        let own = |push: &Push| {
            matches!(push, Push::AgentStatus { online: true, max_sessions: 3, active_sessions: 0 })
        };
        scene.sent_to(conn).iter().filter(|sent| own(&sent.push)).count()
    };
    assert_eq!((status(10), status(11)), (0, 1), "M2");
}
