//! Claim, transfer, end, requeue and rating as their pushes show them (Z5, Z6, S3, S4, A3).

use kefu_assignment::Origin;
use kefu_core::{ConnId, ErrorCode, PageLimit, Seq, SessionId};
use kefu_messaging::{Push, Receipt, RemovalReason, SessionOffer, Window};
use kefu_session::{RatingRequest, Status};
use kefu_testkit::build::{admin, supervisor_caller, trace};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

#[tokio::test(start_paused = true)]
async fn a_transfer_is_told_to_all_three() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let read = scene.say(&visitor("u1"), 1, session, "k1").await;
    let by = agent("a1");
    let trace_id = trace();
    let acked = scene.desk.acknowledge(&by, None, read.msg_id, Receipt::Read, false, &trace_id);
    acked.await.expect("taken");
    let unread = scene.say(&visitor("u1"), 1, session, "k2").await;
    scene.people.log().clear();

    let (origin, note) = (Origin(Some(ConnId(10))), Some("asks for a refund".to_owned()));
    let moved = scene.desk.transfer(&by, session, &admin("a2"), note, origin, &trace()).await;
    moved.expect("transferred");
    idle().await;
    let removed = Push::SessionRemoved {
        session_id: session,
        reason: RemovalReason::Transferred(admin("a2")),
    };
    assert_eq!(scene.pushes(10), [removed], "Z5: the source loses it");
    let [Push::Assigned { agent: shown, .. }] = &scene.pushes(1)[..] else {
        panic!("Z5: the user learns who serves them: {:?}", scene.pushes(1))
    };
    assert_eq!(shown.admin_id, admin("a2"));
    let [Push::SessionNew(offer), Push::Message { message, attempt: 1, own: false }] =
        &scene.pushes(20)[..]
    else {
        panic!("Z5: {:?}", scene.pushes(20))
    };
    assert_eq!((offer.unread, offer.last_seq), (1, Seq(2)), "Z5");
    assert_eq!(offer.note.as_deref(), Some("asks for a refund"), "Z5");
    assert_eq!(message.msg_id, unread.msg_id, "what nobody has yet is pushed at once");
    let reloaded = scene.agent("a2", 21, 5).await;
    assert_eq!(reloaded.owned[0].note.as_deref(), Some("asks for a refund"), "Z7: as before");
}

#[tokio::test(start_paused = true)]
async fn after_a_transfer_the_former_agent_gets_nothing_more() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let mine = scene.say(&agent("a1"), 10, session, "mine").await;
    scene.say(&visitor("u1"), 1, session, "before").await;
    scene.types(&visitor("u1"), 1, session).await;
    idle().await;
    scene.transfer(&agent("a1"), session, "a2").await;
    idle().await;
    scene.people.log().clear();

    scene.say(&visitor("u1"), 1, session, "after").await;
    scene.types(&visitor("u1"), 1, session).await;
    scene.acknowledge(&visitor("u1"), &mine).await;
    pass(30.0).await;
    scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    assert_eq!(scene.kinds(10), [] as [&str; 0], "A3");
    assert!(scene.kinds(20).contains(&"peer_ack"), "M2: the new owner holds that side");

    let limit = PageLimit::MAX;
    let read = scene.desk.history(&agent("a1"), session, Window::After(Seq(0)), limit).await;
    assert_eq!(read.expect_err("refused").code(), ErrorCode::NotFound, "A3");
    let typing = scene.desk.typing(&agent("a1"), ConnId(10), session, true, &trace()).await;
    assert_eq!(typing.expect_err("refused").code(), ErrorCode::NotFound, "A3");
}

#[tokio::test(start_paused = true)]
async fn what_the_visitor_wrote_while_waiting_is_pushed_to_the_agent() {
    let scene = Scene::start();
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    for key in ["1", "2", "3"] {
        scene.say(&visitor("u1"), 1, session, key).await;
    }
    scene.agent("a1", 10, 1).await;
    idle().await;
    assert_eq!(scene.kinds(10), ["session_new", "message", "message", "message"], "2.7");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_answered_to_its_origin_and_pushed_to_the_others() {
    let scene = Scene::start();
    let session = scene.consult("u1", 1).await.session_id.expect("open");
    scene.say(&visitor("u1"), 1, session, "k").await;
    scene.agent("a1", 10, 0).await;
    scene.agent("a1", 11, 0).await;
    // Online by a row of the store's own: no event, so the drain is not quicker than the claim.
    scene.put_agent(scene.agent_row("a1").await.online(5)).await;
    scene.people.log().clear();

    let origin = Origin(Some(ConnId(10)));
    let mut given = None;
    let give = |offer: &SessionOffer| given = Some(offer.clone());
    scene.desk.claim(&agent("a1"), session, origin, &trace(), give).await.expect("claimed");
    let offer = given.expect("given");
    assert_eq!((offer.session_id, offer.unread, offer.last_seq), (session, 1, Seq(1)), "Z6");
    idle().await;
    assert_eq!(scene.kinds(10), ["message"], "the answer is the offer");
    assert_eq!(scene.kinds(11), ["session_new", "message"]);
    assert_eq!(scene.kinds(1), ["assigned"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_is_answered_to_its_origin_and_pushed_to_everybody_else_once() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.consult("u1", 2).await;
    let origin = Origin(Some(ConnId(1)));
    for _ in 0..3 {
        let ended = scene.desk.end(&visitor("u1"), session, origin, &trace()).await;
        assert_eq!(ended.expect("S4").status, Status::Ended);
    }
    idle().await;
    assert_eq!(scene.kinds(1), [] as [&str; 0]);
    assert_eq!(scene.kinds(2), ["ended"]);
    assert_eq!(scene.kinds(10), ["ended"], "S4: told once");
}

/// S3: whoever served last is told of each rating, as it is stored.
#[tokio::test(start_paused = true)]
async fn a_rating_is_told_to_who_served_last() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let rate = async |score, comment: &str| {
        let request = RatingRequest { score, comment: comment.to_owned() };
        scene.desk.rate(&visitor("u1"), session, &request, &trace()).await.expect("S3");
        idle().await;
    };
    scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    scene.people.log().clear();
    rate(2, "slow").await;
    rate(4, "well, in the end").await;
    let told = |push: &Push| match push {
        Push::Rated { rating, .. } => Some((rating.score, rating.comment.clone())),
        _ => None,
    };
    let told: Vec<_> = scene.pushes(10).iter().filter_map(told).collect();
    assert_eq!(told, [(2, "slow".to_owned()), (4, "well, in the end".to_owned())]);
    assert_eq!((scene.kinds(1), scene.kinds(20)), (vec![], vec![]), "nobody else");
}

#[tokio::test(start_paused = true)]
async fn a_free_place_is_filled_when_a_session_ends_or_moves() {
    let scene = Scene::start();
    scene.agent("a1", 10, 1).await;
    let first = scene.consult("u1", 1).await.session_id.expect("open");
    idle().await;
    let second = scene.consult("u2", 2).await.session_id.expect("open");
    let third = scene.consult("u3", 3).await.session_id.expect("open");
    idle().await;
    assert_eq!(scene.session(second).await.status, Status::Waiting, "CC-03");
    scene.desk.end(&visitor("u1"), first, NOWHERE, &trace()).await.expect("ended");
    idle().await;
    assert!(scene.session(second).await.is_owned_by(&admin("a1")), "Z3");

    scene.agent("a2", 20, 0).await;
    let row = scene.agent_row("a2").await;
    assert!(!row.is_eligible());
    scene.desk.agent_online(&agent("a2"), 2, NOWHERE, &trace()).await.expect("online");
    idle().await;
    assert!(scene.session(third).await.is_owned_by(&admin("a2")), "Z3: agent online");
    let fourth = scene.consult("u4", 4).await.session_id.expect("open");
    let fifth = scene.consult("u5", 5).await.session_id.expect("open");
    idle().await;
    assert!(scene.session(fourth).await.is_owned_by(&admin("a2")));
    scene.desk.agent_online(&agent("a1"), 2, NOWHERE, &trace()).await.expect("cap raised");
    idle().await;
    assert!(scene.session(fifth).await.is_owned_by(&admin("a1")), "Z3: cap raised");
}

#[tokio::test(start_paused = true)]
async fn a_requeue_is_told_to_both_and_followed_by_what_to_expect() {
    let scene = Scene::start();
    let session = scene.talking().await;
    let origin = Origin(Some(ConnId(10)));
    let offline = scene.desk.agent_offline(&agent("a1"), true, origin, &trace()).await;
    assert_eq!(offline.expect("offline").active_sessions, 0);
    pass(1.0).await;
    assert_eq!(scene.kinds(1), ["requeued", "offline_notice"], "protocol: followed by the notice");
    let removed = Push::SessionRemoved { session_id: session, reason: RemovalReason::Requeued };
    assert!(scene.pushes(10).contains(&removed));
    assert_eq!(scene.session(session).await.status, Status::Waiting);
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_the_open_session_reads_the_users_past_while_it_owns_it() {
    let scene = Scene::start();
    let past = scene.talking().await;
    scene.say(&visitor("u1"), 1, past, "k").await;
    scene.desk.end(&visitor("u1"), past, NOWHERE, &trace()).await.expect("ended");
    scene.desk.agent_offline(&agent("a1"), false, NOWHERE, &trace()).await.expect("offline");
    scene.agent("a2", 20, 5).await;
    let read = async |by: &str| {
        let window = Window::After(Seq(0));
        let page = scene.desk.history(&agent(by), past, window, PageLimit::MAX).await;
        page.map(|page| page.items.len()).map_err(|error| error.code())
    };
    assert_eq!(read("a2").await, Err(ErrorCode::NotFound), "A3: not yet");
    let open = scene.consult("u1", 1).await.session_id.expect("open");
    idle().await;
    assert!(scene.session(open).await.is_owned_by(&admin("a2")));
    assert_eq!(read("a2").await, Ok(1), "A3");
    assert_eq!(read("a1").await, Ok(1), "A3: recorded at the end");
    scene.desk.end(&visitor("u1"), open, NOWHERE, &trace()).await.expect("ended");
    assert_eq!(read("a2").await, Err(ErrorCode::NotFound), "A3: no longer");
}

#[tokio::test(start_paused = true)]
async fn wrong_roles_are_forbidden_whether_the_object_exists_or_not() {
    let scene = Scene::start();
    let session = scene.talking().await;
    let message = scene.say(&visitor("u1"), 1, session, "k").await;
    let supervisor = supervisor_caller("s1");
    let unknown = SessionId::new(1).expect("positive");
    for id in [session, unknown] {
        let typing = scene.desk.typing(&supervisor, ConnId(30), id, true, &trace()).await;
        assert_eq!(typing.expect_err("refused").code(), ErrorCode::Forbidden, "A3");
        let upload = scene.desk.upload_target(&supervisor, Some(id)).await;
        assert_eq!(upload.expect_err("refused").code(), ErrorCode::Forbidden, "A3");
        let rating = RatingRequest { score: 5, comment: String::new() };
        let rate = scene.desk.rate(&agent("a1"), id, &rating, &trace()).await;
        assert_eq!(rate.expect_err("refused").code(), ErrorCode::Forbidden, "A3");
        let (by, to) = (visitor("u1"), admin("a2"));
        let moved = scene.desk.transfer(&by, id, &to, None, NOWHERE, &trace()).await;
        assert_eq!(moved.expect_err("refused").code(), ErrorCode::Forbidden, "A3");
    }
    let msg_id = message.msg_id;
    let acked =
        scene.desk.acknowledge(&supervisor, None, msg_id, Receipt::Read, false, &trace()).await;
    assert_eq!(acked.expect_err("refused").code(), ErrorCode::Forbidden, "A3");
    assert!(scene.desk.queue_list(&visitor("u1")).await.is_err());
    assert!(scene.desk.agent_list(&visitor("u1")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn over_long_notes_and_comments_are_refused_not_cut() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 5).await;
    let long = "客".repeat(501);
    let by = agent("a1");
    let note = Some(long.clone());
    let moved = scene.desk.transfer(&by, session, &admin("a2"), note, NOWHERE, &trace()).await;
    assert_eq!(moved.expect_err("refused").code(), ErrorCode::ContentTooLong, "A4");
    let rating = RatingRequest { score: 5, comment: long };
    let rated = scene.desk.rate(&visitor("u1"), session, &rating, &trace()).await;
    assert_eq!(rated.expect_err("refused").code(), ErrorCode::ContentTooLong, "A4");
    assert!(scene.session(session).await.is_owned_by(&admin("a1")));

    let rating = RatingRequest { score: 4, comment: "客".repeat(500) };
    scene.desk.rate(&visitor("u1"), session, &rating, &trace()).await.expect("rated");
    scene.desk.end(&visitor("u1"), session, NOWHERE, &trace()).await.expect("ended");
    let rating = RatingRequest { score: 2, comment: String::new() };
    scene.desk.rate(&visitor("u1"), session, &rating, &trace()).await.expect("rated again");
    assert_eq!(scene.session(session).await.rating.map(|rating| rating.score), Some(2), "S3");
}
