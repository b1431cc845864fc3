//! What happens without anybody asking: grace, restart, the line, healing (Z3, Z7, P1, P4, M5).

use kefu_core::{ConnId, Seq, SessionId};
use kefu_desk::Position;
use kefu_messaging::{Push, decide_append};
use kefu_presence::Availability;
use kefu_session::{Status, decide_open};
use kefu_testkit::build::{admin, user};

use crate::common::{Scene, agent, idle, pass, visitor};

#[tokio::test(start_paused = true)]
async fn an_agent_gone_beyond_the_grace_gives_the_session_back_with_its_place() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    let before = scene.session(session).await;
    pass(5.0).await;
    scene.leave(&agent("a1"), 10).await;
    scene.stay(&visitor("u1"), 1, 119).await;
    assert!(scene.session(session).await.is_owned_by(&admin("a1")), "Z7: within the grace");
    pass(3.0).await;
    let after = scene.session(session).await;
    assert_eq!((after.status, after.queued_at), (Status::Waiting, before.queued_at), "Z7");
    let requeued = Push::Requeued { session_id: session, reason: "agent_gone" };
    assert_eq!(scene.pushes(1)[0], requeued, "Z7: the user is told");
    assert_eq!(scene.kinds(1)[1..], ["offline_notice"]);
    let agent = scene.agent_row("a1").await;
    assert_eq!((agent.availability, agent.active_sessions), (Availability::Offline, 0), "Z7");
}

#[tokio::test(start_paused = true)]
async fn an_agent_back_within_the_grace_keeps_everything() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    scene.leave(&agent("a1"), 10).await;
    pass(100.0).await;
    scene.agent("a1", 11, 0).await;
    for _ in 0..10 {
        pass(30.0).await;
        scene.desk.renew(&agent("a1").person(), ConnId(11)).await;
    }
    assert!(scene.session(session).await.is_owned_by(&admin("a1")), "Z7");
    assert!(!scene.kinds(1).contains(&"requeued"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_without_a_word_makes_its_agent_gone() {
    let scene = Scene::start().sweeping();
    pass(100.0).await;
    scene.agent("a1", 10, 5).await;
    let is_live = async || scene.agent_row("a1").await.live;
    pass(59.0).await;
    scene.desk.renew(&agent("a1").person(), ConnId(10)).await;
    pass(59.0).await;
    assert!(is_live().await, "P1: 59 s after a sign of life");
    pass(3.0).await;
    assert!(!is_live().await, "P1, P4: 61 s after the last one");
    let row = scene.agent_row("a1").await;
    assert_eq!(row.availability, Availability::Online, "Z7: the choice stays");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_agents_have_the_whole_grace_from_process_start() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    // The agent left long before; the process was down for longer than the grace.
    scene.leave(&agent("a1"), 10).await;
    scene.stop.cancel();
    pass(600.0).await;
    let scene = scene.killed_and_restarted().await;
    pass(115.0).await;
    assert!(scene.session(session).await.is_owned_by(&admin("a1")), "P4: counted from the start");
    scene.agent("a1", 11, 0).await;
    pass(50.0).await;
    assert!(scene.session(session).await.is_owned_by(&admin("a1")), "Z7: came back");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_who_does_not_come_back_is_gone_after_the_grace() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    let scene = scene.killed_and_restarted().await;
    let row = scene.agent_row("a1").await;
    assert_eq!((row.live, row.gone_since), (false, Some(scene.clock.now())), "P4");
    scene.resume("u1", 1).await;
    pass(123.0).await;
    assert_eq!(scene.session(session).await.status, Status::Waiting, "Z7");
    assert!(scene.kinds(1).contains(&"requeued"));
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_process_did_not_hand_over_is_delivered_by_the_next() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.stop.cancel();
    scene.tracker.close();
    idle().await;
    // Committed, and killed before anybody was told.
    let context = scene.context();
    let sender = kefu_testkit::build::from_user(&user("u1", 0).user_id);
    let request = kefu_testkit::build::text(session, &sender, "k", "hi");
    let appended = scene
        .stores
        .messages
        .append(
            std::slice::from_ref(&request),
            &|snapshot, batch, ids| decide_append(snapshot, batch, &context, ids),
            scene.ids.as_ref(),
        )
        .await;
    appended.expect("appended");
    let next = scene.killed_and_restarted().await;
    next.people.add(ConnId(10), agent("a1").person());
    idle().await;
    assert_eq!(next.kinds(10).iter().filter(|kind| **kind == "message").count(), 1, "N2");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_while_somebody_has_room_even_if_no_event_came() {
    let scene = Scene::start().sweeping();
    scene.agent("a1", 10, 5).await;
    pass(2.0).await;
    let context = scene.context();
    let info = user("u1", 0);
    let opened = scene
        .stores
        .sessions
        .open(
            &info.user_id,
            &|open, ids| decide_open(open, &info, "web", 0, &context, ids),
            scene.ids.as_ref(),
        )
        .await;
    let id = opened.expect("opened").session.id;
    pass(1.1).await;
    assert!(scene.session(id).await.is_owned_by(&admin("a1")), "Z3: within a second");
}

#[tokio::test(start_paused = true)]
async fn an_agent_wrongly_marked_gone_is_there_again_within_a_second() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    pass(5.0).await;
    let row = scene.agent_row("a1").await;
    scene.put_agent(row.vanished(scene.clock.now())).await;
    pass(2.1).await;
    let row = scene.agent_row("a1").await;
    assert!(row.live, "Z7: the lease decides");
    pass(40.0).await;
    assert!(scene.session(session).await.is_owned_by(&admin("a1")));
}

/// The agent's connection 10 has been served up to `written`.
fn place(scene: &Scene, session: SessionId, written: i64) {
    let position = Position {
        conn: ConnId(10),
        person: agent("a1").person(),
        session_id: session,
        written: Seq(written),
    };
    scene.people.place(&[position]);
}

fn healed(scene: &Scene) -> Vec<(i64, bool)> {
    let message = |push: &Push| match push {
        Push::Message { message, own, .. } => Some((message.seq.0, *own)),
        _ => None,
    };
    scene.pushes(10).iter().filter_map(message).collect()
}

/// Three messages stored and delivered; nothing is pushed again by itself.
async fn three_delivered(scene: &Scene) -> SessionId {
    let session = scene.talking().await;
    for key in ["1", "2", "3"] {
        let message = scene.say(&visitor("u1"), 1, session, key).await;
        scene.acknowledge(&agent("a1"), &message).await;
    }
    idle().await;
    scene.people.log().clear();
    session
}

#[tokio::test(start_paused = true)]
async fn what_stayed_behind_between_two_looks_is_pushed_without_anybodys_key() {
    let scene = Scene::start().sweeping();
    let session = three_delivered(&scene).await;
    place(&scene, session, 1);
    pass(9.0).await;
    assert_eq!(healed(&scene), [], "one look is not enough");
    pass(12.0).await;
    assert_eq!(healed(&scene), [(2, false), (3, false)], "M5, and no foreign clientMsgId");
    place(&scene, session, 3);
    pass(60.0).await;
    assert_eq!(healed(&scene).len(), 2, "healed once");
}

#[tokio::test(start_paused = true)]
async fn a_connection_far_behind_is_caught_up_at_one_look() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    for number in 1..=130 {
        let message = scene.say(&visitor("u1"), 1, session, &number.to_string()).await;
        scene.acknowledge(&agent("a1"), &message).await;
    }
    idle().await;
    scene.people.log().clear();
    place(&scene, session, 7);
    pass(21.0).await;
    let healed: Vec<_> = healed(&scene).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(healed, (8..=130).collect::<Vec<_>>(), "M5: in order, to the end");
}

#[tokio::test(start_paused = true)]
async fn what_moves_or_is_up_to_date_is_left_alone() {
    let scene = Scene::start().sweeping();
    let session = three_delivered(&scene).await;
    for written in [0, 1, 2, 3, 3, 3] {
        place(&scene, session, written);
        pass(10.0).await;
    }
    assert_eq!(healed(&scene), [], "M5: on its way is not lost");
}
