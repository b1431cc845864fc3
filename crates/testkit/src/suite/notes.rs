//! `NoteStore`: private notes, apart from messages (B95).

use std::collections::BTreeSet;

use kefu_console::{Note, NoteRequest, NoteVerdict, decide_note};
use kefu_core::{Caller, ClientMsgId, NoteId, PageLimit, Person, SessionId, StoreFault};
use kefu_events::Event;
use kefu_messaging::Window;
use kefu_session::{Refusal, Session};

use crate::build::{admin, agent_caller, from_user, supervisor_caller};
use crate::{Harness, World, race};

/// A note is written with its event, every field of it survives a restart, and it is listed and found.
pub async fn every_field_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let session = served(&world).await;
    let author = agent_caller(&admin("a1"));
    let keyed = request(session.id, "第一条\n\t😀", Some("k"));
    let notes = [
        store(&world, &author, &keyed).await,
        store(&world, &supervisor_caller("boss"), &request(session.id, "two", None)).await,
    ];
    let events: Vec<_> = world.outbox().await.into_iter().map(|row| row.event).collect();
    for note in &notes {
        let (session_id, note_id) = (note.session_id, note.id);
        let added = Event::NoteAdded { session_id, note_id, admin_id: note.admin_id.clone() };
        assert!(events.contains(&added), "{added:?}");
    }
    let world = world.restarted(&mut harness).await;
    assert_eq!(notes[0].key.as_ref().map(ClientMsgId::as_str), Some("k"));
    for note in &notes {
        assert_eq!(world.stores.notes.find(note.id).await.unwrap().as_ref(), Some(note));
    }
    let page = world.stores.notes.list(session.id, None, PageLimit::MAX).await.unwrap();
    assert_eq!((page.items.as_slice(), page.has_more), (&notes[..], false));
    let next = store(&world, &author, &request(session.id, "three", None)).await;
    assert!(next.id > notes[1].id, "T3: above what a former process stored");
    let unknown = NoteId::new(1).unwrap();
    assert_eq!(world.stores.notes.find(unknown).await.unwrap(), None);
}

/// The snapshot shows the session, its user's open session, the author's key and the last note; a refusal writes
/// nothing.
pub async fn the_snapshot_holds_what_it_promises<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let ended = served(&world).await;
    let first =
        store(&world, &agent_caller(&admin("a1")), &request(ended.id, "one", Some("k"))).await;
    let ended = world.end_by_user(&ended).await;
    let open = world.open("u1", 0).await;
    let before = world.outbox().await.len();
    let look = |author: &'static str, key: Option<&'static str>, session: SessionId| {
        let world = world.clone();
        async move {
            let seen = std::sync::Mutex::new(None);
            let verdict = world
                .stores
                .notes
                .add(
                    &admin(author),
                    &request(session, "x", key),
                    &|snapshot, _| {
                        *seen.lock().unwrap() = Some(snapshot.clone());
                        NoteVerdict::Refuse(Refusal::Conflict)
                    },
                    world.ids.as_ref(),
                )
                .await;
            assert!(matches!(verdict, Ok(NoteVerdict::Refuse(Refusal::Conflict))));
            seen.into_inner().unwrap().expect("decided")
        }
    };
    let seen = look("a1", Some("k"), ended.id).await;
    assert_eq!((seen.session, seen.users_open), (Some(ended.clone()), Some(open)));
    assert_eq!((seen.earlier, seen.last), (Some(first.clone()), Some(first.id)));
    for (author, key) in [("a1", None), ("a1", Some("K")), ("A1", Some("k")), ("a2", Some("k"))] {
        assert_eq!(look(author, key, ended.id).await.earlier, None, "{author} {key:?}");
    }
    let unknown = look("a1", Some("k"), SessionId::new(1).unwrap()).await;
    assert_eq!((unknown.session, unknown.earlier, unknown.last), (None, None, None));
    assert_eq!(world.outbox().await.len(), before, "nothing was written");
}

/// Of many adds at once under one key one is stored, and all get it.
pub async fn one_key_stores_one_note<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = served(&world).await;
    let notes = race(40, |n| {
        let (world, session) = (world.clone(), session.id);
        async move {
            let key = format!("k{}", n % 4);
            let request = request(session, &key, Some(&key));
            match add(&world, &agent_caller(&admin("a1")), &request).await.unwrap() {
                NoteVerdict::Store(note, _) | NoteVerdict::Repeat(note) => note.id,
                NoteVerdict::Refuse(refusal) => panic!("{refusal}"),
            }
        }
    })
    .await;
    assert_eq!(notes.into_iter().collect::<BTreeSet<_>>().len(), 4);
    let page = world.stores.notes.list(session.id, None, PageLimit::MAX).await.unwrap();
    assert_eq!(page.items.len(), 4);
    let added = world.outbox().await.into_iter();
    assert_eq!(added.filter(|row| matches!(row.event, Event::NoteAdded { .. })).count(), 4);
}

/// Pages go downwards from `before` and are ascending within; sessions do not mix.
pub async fn notes_come_in_pages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = served(&world).await;
    let author = supervisor_caller("boss");
    let mut ids = Vec::new();
    for n in 1..=7 {
        ids.push(store(&world, &author, &request(session.id, &n.to_string(), None)).await.id);
    }
    let other = world.open("u2", 0).await;
    store(&world, &author, &request(other.id, "other", None)).await;
    let three = PageLimit::new(3).unwrap();
    let mut before = None;
    for (expected, has_more) in [(&ids[4..], true), (&ids[1..4], true), (&ids[..1], false)] {
        let page = world.stores.notes.list(session.id, before, three).await.unwrap();
        let found: Vec<_> = page.items.iter().map(|note| note.id).collect();
        assert_eq!((found.as_slice(), page.has_more), (expected, has_more));
        before = found.first().copied();
    }
    let none = world.stores.notes.list(session.id, before, three).await.unwrap();
    assert_eq!((none.items.len(), none.has_more), (0, false));
}

/// B95: nothing that reads messages gives a note, and no position or version of the session moves.
pub async fn notes_are_no_messages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = served(&world).await;
    world.say(session.id, &from_user(&session.user.user_id), "k", "hello").await;
    let before = world.session(session.id).await;
    store(&world, &agent_caller(&admin("a1")), &request(session.id, "private", Some("k2"))).await;
    assert_eq!(world.session(session.id).await, before);
    for window in [Window::After(kefu_core::Seq(0)), Window::Before(kefu_core::Seq(i64::MAX))] {
        let page = world.stores.messages.history(session.id, window, PageLimit::MAX).await.unwrap();
        assert_eq!(page.items.len(), 1, "{window:?}");
    }
    for person in [Person::User(session.user.user_id.clone()), Person::Agent(admin("a1"))] {
        let owed = world.stores.messages.list_undelivered(&person, None, PageLimit::MAX).await;
        assert!(owed.unwrap().items.iter().all(|message| message.content == "hello"));
    }
}

async fn served(world: &World) -> Session {
    world.agent("a1", 5).await;
    let session = world.open("u1", 0).await;
    world.claim(&admin("a1"), session.id).await.expect("claimed")
}

fn request(session: SessionId, content: &str, key: Option<&str>) -> NoteRequest {
    NoteRequest {
        session_id: session,
        content: content.to_owned(),
        key: key.map(|key| ClientMsgId::new(key).expect("valid")),
        origin: None,
    }
}

async fn add(
    world: &World,
    author: &Caller,
    request: &NoteRequest,
) -> Result<NoteVerdict, StoreFault> {
    let context = world.context();
    let admin = author.admin_id().expect("no user");
    world
        .stores
        .notes
        .add(
            admin,
            request,
            &|snapshot, ids| decide_note(snapshot, author, request, &context, ids),
            world.ids.as_ref(),
        )
        .await
}

async fn store(world: &World, author: &Caller, request: &NoteRequest) -> Note {
    match add(world, author, request).await.expect("answered") {
        NoteVerdict::Store(note, _) => note,
        other => panic!("not stored: {other:?}"),
    }
}
