//! `MessageStore`'s reads: history, what is undelivered and unread, the highest id.

use kefu_assignment::Change;
use kefu_core::{AdminId, AssignmentId, Clock, MsgId, PageLimit, Person, Seq, SessionId, UserId};
use kefu_messaging::{Receipt, Sender, Side, Window};
use kefu_session::Session;

use crate::build::{
    agent_caller, from_agent, from_user, receipt, receipt_up_to, text, unanswered, user_caller,
};
use crate::{Harness, World};

/// Both windows are ascending and say truly whether more lies in their direction.
pub async fn windows_are_exact_at_every_edge<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let other = world.open("u2", 0).await;
    world.say_many(session.id, &from_user(&session.user.user_id), 120).await;
    world.say_many(other.id, &from_user(&other.user.user_id), 3).await;
    let after = |seq| Window::After(Seq(seq));
    let before = |seq| Window::Before(Seq(seq));
    let cases = [
        (after(0), 50, 1..=50, true),
        (after(69), 50, 70..=119, true),
        (after(70), 50, 71..=120, false),
        (after(71), 50, 72..=120, false),
        (after(119), 50, 120..=120, false),
        (after(118), 1, 119..=119, true),
        (after(-1), 2, 1..=2, true),
        (before(i64::MAX), 50, 71..=120, true),
        (before(121), 50, 71..=120, true),
        (before(52), 50, 2..=51, true),
        (before(51), 50, 1..=50, false),
        (before(50), 50, 1..=49, false),
        (before(2), 50, 1..=1, false),
        (before(3), 1, 2..=2, true),
    ];
    for (window, limit, expected, more) in cases {
        let limit = PageLimit::new(limit).unwrap();
        let page = world.stores.messages.history(session.id, window, limit).await.unwrap();
        let seqs: Vec<_> = page.items.iter().map(|message| message.seq.0).collect();
        assert_eq!(seqs, expected.collect::<Vec<i64>>(), "{window:?}");
        assert_eq!(page.has_more, more, "{window:?}");
        assert!(page.items.iter().all(|message| message.session_id == session.id));
    }
    for window in [after(120), after(i64::MAX), before(1), before(0), before(i64::MIN)] {
        let page = world.stores.messages.history(session.id, window, PageLimit::MAX).await;
        let page = page.unwrap();
        assert_eq!((page.items.len(), page.has_more), (0, false), "{window:?}");
    }
    let unknown = SessionId::new(9).unwrap();
    let page = world.stores.messages.history(unknown, after(0), PageLimit::MAX).await.unwrap();
    assert_eq!((page.items.len(), page.has_more), (0, false));
    assert_eq!(world.stores.messages.find(MsgId::new(9).unwrap()).await.unwrap(), None);
}

/// A user is owed what the other side wrote, over all their sessions, ended ones too, oldest first.
pub async fn a_user_is_owed_over_all_sessions<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 5).await;
    let agent = from_agent(&admin);
    let first = claimed(&world, &admin, "u1").await;
    let mut owed = vec![world.say(first.id, &agent, "1", "x").await.msg_id];
    world.say(first.id, &user_of(&first), "mine", "x").await;
    owed.push(world.say(first.id, &Sender::System, "s", "x").await.msg_id);
    world.end_by_user(&first).await;
    let second = claimed(&world, &admin, "u1").await;
    owed.push(world.say(second.id, &agent, "2", "x").await.msg_id);
    owed.push(world.say(second.id, &Sender::Bot, "b", "x").await.msg_id);
    let foreign = claimed(&world, &admin, "u2").await;
    world.say(foreign.id, &agent, "3", "x").await;
    let user = Person::User(first.user.user_id.clone());
    assert_eq!(undelivered(&world, &user, None).await, owed);
    assert_eq!(undelivered(&world, &user, Some(second.id)).await, owed[2..]);
    assert_eq!(undelivered(&world, &user, Some(foreign.id)).await, [], "not the user's");
    assert_eq!(undelivered(&world, &user, SessionId::new(9).ok()).await, []);
    // Failed is still owed; delivered and read are not.
    let caller = user_caller(&first.user.user_id);
    world.report(&[unanswered(owed[0])]).await.unwrap();
    world.report(&[receipt(&caller, owed[1], Receipt::Delivered)]).await.unwrap();
    world.report(&[receipt(&caller, owed[3], Receipt::Read)]).await.unwrap();
    assert_eq!(undelivered(&world, &user, None).await, [owed[0], owed[2]]);
}

/// An agent is owed what users wrote in the sessions owned now.
pub async fn an_agent_is_owed_over_owned_sessions<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let (a, b) = (world.agent("a", 5).await, world.agent("b", 5).await);
    let waiting = world.open("w", 0).await;
    let early = world.say(waiting.id, &user_of(&waiting), "early", "x").await.msg_id;
    let kept = claimed(&world, &a, "u1").await;
    let moved = claimed(&world, &a, "u2").await;
    let ended = claimed(&world, &a, "u3").await;
    let in_moved = world.say(moved.id, &user_of(&moved), "1", "x").await.msg_id;
    let in_kept = world.say(kept.id, &user_of(&kept), "1", "x").await.msg_id;
    world.say(kept.id, &from_agent(&a), "mine", "x").await;
    world.say(kept.id, &Sender::System, "system", "x").await;
    world.say(ended.id, &user_of(&ended), "1", "x").await;
    world.end_by_user(&ended).await;
    let (pa, pb) = (Person::Agent(a.clone()), Person::Agent(b.clone()));
    assert_eq!(undelivered(&world, &pa, None).await, [in_moved, in_kept], "oldest first by id");
    assert_eq!(undelivered(&world, &pb, None).await, []);
    assert_eq!(undelivered(&world, &pa, Some(kept.id)).await, [in_kept]);
    assert_eq!(undelivered(&world, &pa, Some(ended.id)).await, [], "not owned any more");
    world.transfer(&agent_caller(&a), moved.id, &b).await.unwrap();
    world.claim(&b, waiting.id).await.unwrap();
    let world = world.restarted(&mut harness).await;
    assert_eq!(undelivered(&world, &pa, None).await, [in_kept]);
    assert_eq!(undelivered(&world, &pb, None).await, [early, in_moved]);
    assert_eq!(undelivered(&world, &pa, Some(moved.id)).await, [], "M2: the colleague's now");
}

/// CC-09: the oldest fifty, and whether there are more.
pub async fn undelivered_pages_say_whether_more_follow<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 5).await;
    let session = claimed(&world, &admin, "u1").await;
    world.say_many(session.id, &from_agent(&admin), 51).await;
    let user = Person::User(session.user.user_id.clone());
    let sent = world.history(session.id).await;
    let read = async |world: &World| {
        let list = world.stores.messages.list_undelivered(&user, None, PageLimit::MAX);
        list.await.unwrap()
    };
    let page = read(&world).await;
    assert_eq!((page.items.as_slice(), page.has_more), (&sent[..50], true));
    let caller = user_caller(&session.user.user_id);
    world.report(&[receipt(&caller, sent[0].msg_id, Receipt::Delivered)]).await.unwrap();
    let page = read(&world).await;
    assert_eq!((page.items.as_slice(), page.has_more), (&sent[1..], false));
    let all = [receipt_up_to(&caller, sent[50].msg_id, Receipt::Delivered)];
    world.report(&all).await.unwrap();
    let page = read(&world).await;
    assert_eq!((page.items.len(), page.has_more), (0, false));
}

/// Unread is what the other side wrote and is not `read`; sessions without any are absent.
pub async fn unread_counts_the_other_side<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let admin = world.agent("a1", 5).await;
    let (busy, quiet) = (claimed(&world, &admin, "u1").await, claimed(&world, &admin, "u2").await);
    let mut sent = Vec::new();
    for n in 0..5 {
        sent.push(world.say(busy.id, &user_of(&busy), &n.to_string(), "x").await.msg_id);
    }
    world.say(busy.id, &from_agent(&admin), "a", "x").await;
    world.say(busy.id, &Sender::System, "s", "x").await;
    let caller = agent_caller(&admin);
    world.report(&[receipt(&caller, sent[0], Receipt::Read)]).await.unwrap();
    world.report(&[receipt(&caller, sent[1], Receipt::Delivered)]).await.unwrap();
    world.report(&[unanswered(sent[2])]).await.unwrap();
    let asked = [busy.id, quiet.id, SessionId::new(9).unwrap()];
    let count = |reader| world.stores.messages.count_unread(&asked, reader);
    assert_eq!(count(Side::Agent).await.unwrap(), [(busy.id, 4)].into());
    assert_eq!(count(Side::User).await.unwrap(), [(busy.id, 2)].into());
    let nothing = world.stores.messages.count_unread(&[], Side::User).await.unwrap();
    assert!(nothing.is_empty());
    let one = world.stores.messages.count_unread(&[quiet.id], Side::Agent).await.unwrap();
    assert!(one.is_empty());
}

/// T3: the floor for new ids covers every table, whichever holds the highest.
pub async fn the_highest_id_covers_every_table<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let highest = async |world: &World| world.stores.messages.highest_id().await.unwrap();
    assert_eq!(highest(&world).await, 0);
    let opened = world.open_as(&crate::build::user("u1", 0)).await;
    let session = opened.session;
    assert!(highest(&world).await >= opened.events[0].id.get().max(session.id.get()));
    let batch = [text(session.id, &user_of(&session), "k", "x")];
    let verdict = world.append(&batch).await.unwrap();
    let message = verdict.messages[0].msg_id.get();
    assert!(highest(&world).await >= message.max(verdict.events[0].id.get()));
    let far = highest(&world).await + (1 << 40);
    let mut record = crate::build::record(world.ids.as_ref(), session.id, None, world.clock.now());
    record.id = AssignmentId::new(far).unwrap();
    world.apply(&Change { records: vec![record], ..Change::default() }).await.unwrap();
    assert!(highest(&world).await >= far);
    world.clock.step_wall(-300_000);
    let world = world.restarted(&mut harness).await;
    assert!(highest(&world).await >= far);
    assert!(world.say(session.id, &user_of(&session), "k2", "x").await.msg_id.get() > far);
}

/// T3: "ever stored" includes events that were trimmed since.
pub async fn the_highest_id_remembers_trimmed_events<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    world.agent("a1", 1).await;
    let events = world.outbox().await;
    let last = events.last().unwrap().id;
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    let now = world.clock.now();
    world.stores.outbox.confirm(&ids, now).await.unwrap();
    let later = now.after(std::time::Duration::from_secs(60));
    world.stores.outbox.trim(later, 1_000).await.unwrap();
    let world = world.restarted(&mut harness).await;
    assert!(world.stores.messages.highest_id().await.unwrap() >= last.get());
}

async fn claimed(world: &World, admin: &AdminId, user: &str) -> Session {
    let waiting = world.open(user, 0).await;
    world.claim(admin, waiting.id).await.unwrap()
}

fn user_of(session: &Session) -> Sender {
    let id: &UserId = &session.user.user_id;
    from_user(id)
}

async fn undelivered(world: &World, who: &Person, session: Option<SessionId>) -> Vec<MsgId> {
    let list = world.stores.messages.list_undelivered(who, session, PageLimit::MAX);
    list.await.unwrap().items.iter().map(|message| message.msg_id).collect()
}
