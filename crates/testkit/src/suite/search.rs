//! `SessionSearch`: lists of sessions, and the index of what was said in them.

use std::collections::BTreeSet;
use std::time::Duration;

use kefu_core::{Clock as _, Page, PageLimit, Seq, SessionId, Timestamp, UserId};
use kefu_messaging::{
    Message, OpenedSession, Progress, SearchEntry, SearchQuery, SessionFilter, Unindexed, Whose,
    Window,
};
use kefu_session::Session;

use crate::build::{admin, from_agent, from_user};
use crate::{Harness, World, race};

/// The newest first, in pages, each scope with exactly its own; also ended ones.
pub async fn each_scope_lists_its_own<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    world.agent("a1", 9).await;
    let first = served(&world, "u1", "a1").await;
    let first = world.end_by_user(&first).await;
    world.agent("a2", 9).await;
    let second = served(&world, "u1", "a2").await;
    let second = world.end_by_user(&second).await;
    let third = world.open("u1", 0).await;
    let other = served(&world, "u2", "a1").await;
    let (u1, a1) = (UserId::new("u1").unwrap(), admin("a1"));
    for (whose, expected) in [
        (Whose::User(u1.clone()), vec![&third, &second, &first]),
        (Whose::UserWith(u1.clone(), a1.clone()), vec![&first]),
        (Whose::UserWith(u1, admin("A1")), vec![]),
        (Whose::Agent(a1), vec![&other, &first]),
        (Whose::Agent(admin("a2")), vec![&second]),
        (Whose::Agent(admin("nobody")), vec![]),
        (Whose::All, vec![&other, &third, &second, &first]),
    ] {
        let filter = SessionFilter { whose, query: None };
        let expected: Vec<_> = expected.into_iter().cloned().collect();
        assert_eq!(list(&world, &filter, None, 50).await.items, expected, "{filter:?}");
        let mut paged: Vec<Session> = Vec::new();
        loop {
            let before = paged.last().map(|session| session.id);
            let page = list(&world, &filter, before, 1).await;
            paged.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(paged, expected, "{filter:?} in pages of one");
    }
}

/// The last message of each session that has one.
pub async fn last_messages_are_the_last<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (one, two) = (world.open("u1", 0).await, world.open("u2", 0).await);
    let silent = world.open("u3", 0).await;
    world.say_many(one.id, &from_user(&one.user.user_id), 3).await;
    let of_two = world.say(two.id, &from_user(&two.user.user_id), "k", "hello").await;
    let unknown = SessionId::new(1).unwrap();
    let ids = [one.id, two.id, silent.id, unknown];
    let last = world.stores.search.list_last(&ids).await.unwrap();
    assert_eq!(last.keys().copied().collect::<Vec<_>>(), [one.id, two.id]);
    assert_eq!((last[&one.id].seq, &last[&two.id]), (Seq(3), of_two.as_ref()));
    assert!(world.stores.search.list_last(&[]).await.unwrap().is_empty());
}

/// Every session since then, by id, with when an agent first wrote in it.
pub async fn sessions_opened_lately_know_their_first_reply<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    world.agent("a1", 9).await;
    let old = served(&world, "u1", "a1").await;
    world.clock.advance(Duration::from_secs(60));
    let since = world.clock.now();
    let answered = served(&world, "u2", "a1").await;
    let silent = world.open("u3", 0).await;
    world.say(answered.id, &from_user(&answered.user.user_id), "k1", "hello").await;
    world.clock.advance(Duration::from_secs(5));
    let first = world.say(answered.id, &from_agent(&admin("a1")), "k1", "one").await;
    world.say(answered.id, &from_agent(&admin("a1")), "k2", "two").await;
    world.say(old.id, &from_agent(&admin("a1")), "k3", "late").await;
    let ended = world.end_by_user(&answered).await;
    let of = |session: &Session, first_reply| OpenedSession {
        session_id: session.id,
        at: session.started_at,
        first_reply,
    };
    let expected = [of(&ended, Some(first.create_time)), of(&silent, None)];
    assert_eq!(world.stores.search.list_opened(since).await.unwrap(), expected);
    let all = world.stores.search.list_opened(Timestamp(0)).await.unwrap();
    assert_eq!(all.len(), 3);
    assert!(all[0].first_reply.is_some());
    let none = world.stores.search.list_opened(world.clock.now()).await.unwrap();
    assert_eq!(none, []);
}

/// Chinese is found by any part of it, words by their beginning, whatever their case; all of a query must fit.
pub async fn what_was_said_is_found<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    world.agent("a1", 9).await;
    let refund = served(&world, "u1", "a1").await;
    world.say(refund.id, &from_user(&refund.user.user_id), "k1", "我要退款，订单号 AB-1234").await;
    let quotes = "Refunds take ３ days; it's O'Neill\\s \"case\"";
    world.say(refund.id, &from_agent(&admin("a1")), "k2", quotes).await;
    let other = served(&world, "u2", "a1").await;
    world.say(other.id, &from_user(&other.user.user_id), "k1", "退货，不是付款").await;
    world.say(other.id, &from_user(&other.user.user_id), "k2", "Ich möchte ÄRGER, спасибо").await;
    index(&world).await;
    for (query, expected) in [
        ("退款", vec![refund.id]),
        ("退", vec![other.id, refund.id]),
        ("款", vec![other.id, refund.id]),
        ("我要退款", vec![refund.id]),
        ("要退 ab", vec![refund.id]),
        ("退款 付款", vec![]),
        ("REFUND", vec![refund.id]),
        ("refund 1234", vec![refund.id]),
        ("fund", vec![]),
        ("3", vec![refund.id]),
        ("o'neill\\s", vec![refund.id]),
        ("\"case\" OR möchte", vec![]),
        ("case* & möchte", vec![]),
        ("möchte ärger", vec![other.id]),
        ("mochte", vec![]),
        ("Спасибо", vec![other.id]),
        ("u2", vec![other.id]),
        ("不存在", vec![]),
    ] {
        let filter = searching(Whose::All, query);
        let found: Vec<_> =
            list(&world, &filter, None, 50).await.items.iter().map(|session| session.id).collect();
        assert_eq!(found, expected, "{query}");
    }
    let mine = list(&world, &searching(Whose::Agent(admin("a1")), "退"), None, 1).await;
    assert_eq!((mine.items[0].id, mine.has_more), (other.id, true));
    let rest = list(&world, &searching(Whose::Agent(admin("a1")), "退"), Some(other.id), 1).await;
    assert_eq!((rest.items[0].id, rest.has_more), (refund.id, false));
    assert_eq!(list(&world, &searching(Whose::Agent(admin("a2")), "退"), None, 1).await.items, []);
}

/// A session is behind until everything is in the index, and for the last time after its end.
pub async fn nothing_is_forgotten<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let sender = from_user(&session.user.user_id);
    assert_eq!(behind(&world).await, [], "nothing was said yet");
    world.say_many(session.id, &sender, 250).await;
    let [unindexed] = &behind(&world).await[..] else { panic!("it is behind") };
    assert_eq!((unindexed.session.id, unindexed.upto), (session.id, Seq(0)));
    assert_eq!(unindexed.after(), Seq(0));
    let looked = world.stores.search.list_behind(session.started_at, 10).await.unwrap();
    assert_eq!(looked, [], "it was looked at when it began");

    index(&world).await;
    assert_eq!(behind(&world).await, []);
    world.say(session.id, &sender, "late", "Zebra").await;
    let world = world.restarted(&mut harness).await;
    let [unindexed] = &behind(&world).await[..] else { panic!("it is behind again") };
    assert_eq!((unindexed.upto, unindexed.after()), (Seq(250), Seq(200)));
    let ended = world.end_by_user(&session).await;
    let [unindexed] = &world.stores.search.list_behind(Timestamp(0), 10).await.unwrap()[..] else {
        panic!("an ended one waits for nothing")
    };
    assert_eq!(unindexed.session, ended);
    index(&world).await;
    for query in ["Zebra", "1", "99", "100", "101", "200", "250"] {
        let found = list(&world, &searching(Whose::All, query), None, 50).await.items;
        assert_eq!(found, vec![ended.clone()], "{query}: once");
    }
    assert_eq!(world.stores.search.list_behind(Timestamp(i64::MAX), 10).await.unwrap(), []);

    let silent = world.open("u2", 0).await;
    world.end_by_user(&silent).await;
    index(&world).await;
    let found = list(&world, &searching(Whose::All, "u2"), None, 50).await.items;
    assert_eq!(found.len(), 1, "who said nothing is found by name");
    assert_eq!(world.stores.search.list_behind(Timestamp(i64::MAX), 10).await.unwrap(), []);
}

/// Progress never goes back, and entries come only with it, whoever writes at once.
pub async fn of_two_who_index_the_further_holds<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await.id;
    world.say_many(session, &from_user(&UserId::new("u1").unwrap()), 40).await;
    let write = |world: World, upto: i64, word: String, is_final: bool| async move {
        let words = BTreeSet::from([word]);
        let entry = SearchEntry { session_id: session, part: 0, words };
        let progress =
            Progress { session_id: session, upto: Seq(upto), is_final, at: world.clock.now() };
        world.stores.search.write(&[entry], &[progress]).await.unwrap();
    };
    race(20, |n| {
        let n = i64::try_from(n).unwrap() + 1;
        write(world.clone(), n, format!("upto{n}"), false)
    })
    .await;
    let found = |query: &'static str| {
        let world = world.clone();
        async move { list(&world, &searching(Whose::All, query), None, 1).await.items.len() }
    };
    assert_eq!((found("upto20").await, found("upto19").await), (1, 0));
    write(world.clone(), 7, "old".to_owned(), false).await;
    assert_eq!((found("upto20").await, found("old").await), (1, 0));
    write(world.clone(), 20, "final".to_owned(), true).await;
    write(world.clone(), 21, "later".to_owned(), false).await;
    assert_eq!((found("final").await, found("later").await), (1, 0));
    let unknown = Progress {
        session_id: SessionId::new(1).unwrap(),
        upto: Seq(1),
        is_final: false,
        at: Timestamp(1),
    };
    world.stores.search.write(&[], &[unknown]).await.unwrap();
}

async fn served(world: &World, user: &str, agent: &str) -> Session {
    let session = world.open(user, 0).await;
    world.claim(&admin(agent), session.id).await.expect("claimed")
}

fn searching(whose: Whose, query: &str) -> SessionFilter {
    let query = SearchQuery::parse(query).expect("something to search for");
    SessionFilter { whose, query: Some(query) }
}

async fn list(
    world: &World,
    filter: &SessionFilter,
    before: Option<SessionId>,
    limit: u32,
) -> Page<Session> {
    let limit = PageLimit::new(limit).expect("a page");
    world.stores.search.list(filter, before, limit).await.expect("readable")
}

/// What lacks anything, however lately it was looked at.
async fn behind(world: &World) -> Vec<Unindexed> {
    let everything = Timestamp(i64::MAX);
    world.stores.search.list_behind(everything, 10).await.expect("readable")
}

/// Brings everything into the index.
async fn index(world: &World) {
    for unindexed in behind(world).await {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map_or(unindexed.after(), |message| message.seq);
            let window = Window::After(after);
            let page = world.stores.messages.history(unindexed.session.id, window, PageLimit::MAX);
            let page = page.await.expect("readable");
            messages.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        let (entries, progress) = unindexed.index(&messages, world.clock.now());
        world.stores.search.write(&entries, &[progress]).await.expect("written");
    }
}
