//! What a returning client is given (M4, CC-09) and what counts as its first push (M3).

use kefu_core::{ConnId, Seq, SessionId};
use kefu_desk::Intent;
use kefu_messaging::{Message, MessageStatus, Push};
use kefu_testkit::build::trace;

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

fn seqs(messages: &[Message]) -> Vec<i64> {
    messages.iter().map(|message| message.seq.0).collect()
}

/// `a1` wrote `count` messages to `u1`, who is away.
async fn written_to_nobody(scene: &Scene, count: usize) -> SessionId {
    let session = scene.talking().await;
    scene.leave(&visitor("u1"), 1).await;
    for n in 0..count {
        scene.say(&agent("a1"), 10, session, &format!("k{n}")).await;
    }
    idle().await;
    session
}

#[tokio::test(start_paused = true)]
async fn without_a_position_the_oldest_fifty_undelivered_come_first() {
    let scene = Scene::start();
    let session = written_to_nobody(&scene, 60).await;
    let answer = scene.resume("u1", 2).await;
    assert_eq!(seqs(&answer.unread), (1..=50).collect::<Vec<_>>(), "M4, CC-09");
    assert!(answer.has_more, "M4: never a partial set shown as whole");
    assert!(!answer.served.contains_key(&session), "M5: more is to be pulled");

    for message in &answer.unread {
        scene.acknowledge(&visitor("u1"), message).await;
    }
    let answer = scene.resume("u1", 2).await;
    assert_eq!(seqs(&answer.unread), (51..=60).collect::<Vec<_>>(), "what is delivered is not");
    assert!(!answer.has_more);
    assert_eq!(answer.served[&session], Seq(60));
}

#[tokio::test(start_paused = true)]
async fn with_a_position_exactly_what_is_above_it_comes() {
    let scene = Scene::start();
    let session = written_to_nobody(&scene, 5).await;
    let mine = scene.say(&visitor("u1"), 1, session, "mine").await;
    let undelivered = scene.resume("u1", 2).await.unread;
    scene.acknowledge(&visitor("u1"), &undelivered[3]).await;

    let at = |seq| [(session, seq)];
    let positioned = async |seq| {
        scene.connect(&visitor("u1"), 2, Intent::Resume, &at(seq)).await.expect("connected")
    };
    let answer = positioned(3).await;
    assert_eq!(seqs(&answer.unread), [4, 5, 6], "M4: a pull, delivered and own ones too");
    assert_eq!(answer.unread[2].msg_id, mine.msg_id);
    assert_eq!(seqs(&positioned(6).await.unread), [] as [i64; 0]);
    let from_the_start = positioned(0).await;
    assert_eq!(seqs(&from_the_start.unread), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_position_of_another_session_is_ignored() {
    let scene = Scene::start();
    let session = written_to_nobody(&scene, 3).await;
    let other = SessionId::new(session.get() - 1).expect("positive");
    let position = [(other, 2)];
    let answer = scene.connect(&visitor("u1"), 2, Intent::Resume, &position).await;
    assert_eq!(seqs(&answer.expect("connected").unread), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_in_an_ended_session_still_comes() {
    let scene = Scene::start();
    let session = written_to_nobody(&scene, 2).await;
    scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    let answer = scene.consult("u1", 2).await;
    assert_ne!(answer.session_id, Some(session));
    assert_eq!(answer.unread.len(), 2, "M4: over its sessions");
    assert!(answer.unread.iter().all(|message| message.session_id == session));
}

/// `u1` and `u2` wrote `count` messages each, in turns, to `a1`, who is away.
async fn two_sessions(scene: &Scene, count: usize) -> [SessionId; 2] {
    let first = scene.talking().await;
    let second = scene.consult("u2", 2).await.session_id.expect("open");
    idle().await;
    scene.people.remove(ConnId(10));
    for n in 0..count {
        scene.say(&visitor("u1"), 1, first, &format!("k{n}")).await;
        scene.say(&visitor("u2"), 2, second, &format!("k{n}")).await;
    }
    idle().await;
    [first, second]
}

#[tokio::test(start_paused = true)]
async fn an_agent_gets_one_list_cut_at_fifty_across_its_sessions() {
    let scene = Scene::start();
    let [first, second] = two_sessions(&scene, 30).await;
    let answer = scene.agent("a1", 11, 0).await;
    assert_eq!(answer.unread.len(), 50, "CC-09");
    assert!(answer.unread.is_sorted_by(|a, b| a.msg_id < b.msg_id), "oldest first");
    for session in [first, second] {
        let of_session = answer.unread.iter().filter(|m| m.session_id == session);
        let of_session: Vec<_> = of_session.map(|message| message.seq.0).collect();
        assert_eq!(of_session, (1..=25).collect::<Vec<_>>(), "the oldest, no gap");
        assert!(!answer.served.contains_key(&session), "cut, so more is to be pulled");
    }
    assert!(answer.has_more);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_fits_is_served_whole_beside_one_that_was_cut() {
    let scene = Scene::start();
    let [first, second] = two_sessions(&scene, 5).await;
    for n in 0..60 {
        scene.say(&visitor("u2"), 2, second, &format!("more{n}")).await;
    }
    let answer = scene.agent("a1", 11, 0).await;
    assert!(answer.has_more);
    assert_eq!(answer.served.keys().copied().collect::<Vec<_>>(), [first]);
}

#[tokio::test(start_paused = true)]
async fn an_agents_positions_count_for_their_sessions_only() {
    let scene = Scene::start();
    let [first, second] = two_sessions(&scene, 4).await;
    let person = agent("a1").person();
    let delivered =
        scene.stores.messages.list_undelivered(&person, Some(second), kefu_core::PageLimit::MAX);
    scene.acknowledge(&agent("a1"), &delivered.await.expect("readable").items[0]).await;
    let position = [(first, 3)];
    let answer = scene.connect(&agent("a1"), 11, Intent::Resume, &position).await;
    let answer = answer.expect("connected");
    let of = |session| {
        let own: Vec<_> =
            answer.unread.iter().filter(|m| m.session_id == session).cloned().collect();
        seqs(&own)
    };
    assert_eq!(of(first), [4], "M4: above its position");
    assert_eq!(of(second), [2, 3, 4], "M4: missing in lastSeqs gives the undelivered");
}

#[tokio::test(start_paused = true)]
async fn what_the_answer_carried_is_pushed_again_unless_acknowledged() {
    let scene = Scene::start();
    written_to_nobody(&scene, 2).await;
    scene.people.log().clear();
    let answer = scene.resume("u1", 2).await;
    let start = scene.clock.now();
    scene.acknowledge(&visitor("u1"), &answer.unread[1]).await;
    pass(30.0).await;
    let pushed: Vec<_> = scene
        .sent_to(2)
        .into_iter()
        .filter_map(|sent| match sent.push {
            Push::Message { message, attempt, .. } => Some((message.seq.0, attempt)),
            _ => None,
        })
        .collect();
    assert_eq!(pushed, [(1, 2), (1, 3), (1, 4)], "M3: the answer was the first push");
    let failed = scene.pushes(10).into_iter().any(|push| {
        matches!(push, Push::PeerAck { status: MessageStatus::Failed, seq: Seq(1), .. })
    });
    assert!(failed && scene.clock.now() > start, "M3: told to the sender");
}
