//! `CannedStore`: shelves of canned replies.

use kefu_console::{CannedReply, CannedRequest, CannedVerdict, Shelf, decide_delete, decide_put};
use kefu_core::limit::MAX_CANNED;
use kefu_core::{CannedId, Clock as _, StoreFault};
use kefu_session::Refusal;

use crate::build::admin;
use crate::{Harness, World, race};

/// Every field comes back as it was written, also after a restart; a reply is replaced by its id.
pub async fn every_field_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let long = request("😀", &"退".repeat(500));
    let own = put(&world, &own("a1"), &CannedRequest { title: "标题".into(), ..long }).await;
    let team = put(&world, &Shelf::Team, &request("hi", "hello\n")).await;
    let changed = CannedRequest { id: Some(team.id), ..request("yo", "hello") };
    let changed = put(&world, &Shelf::Team, &changed).await;
    assert_eq!(changed.id, team.id);
    let world = world.restarted(&mut harness).await;
    assert_eq!(list(&world, std::slice::from_ref(&own.shelf)).await, vec![own.clone()]);
    assert_eq!(list(&world, &[Shelf::Team]).await, vec![changed.clone()]);
    assert_eq!(list(&world, &[own.shelf.clone(), Shelf::Team]).await, [own, changed.clone()]);
    let next = put(&world, &Shelf::Team, &request("hi", "again")).await;
    assert!(next.id > changed.id, "T3: above what a former process stored");
}

/// Shelves do not mix: the same shortcut may be on each, nobody sees or changes another's.
pub async fn shelves_are_apart<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let shelves = [own("a1"), own("A1"), own("a2"), Shelf::Team];
    let mut replies = Vec::new();
    for shelf in &shelves {
        replies.push(put(&world, shelf, &request("hi", "hello")).await);
    }
    for (shelf, reply) in shelves.iter().zip(&replies) {
        assert_eq!(list(&world, std::slice::from_ref(shelf)).await, vec![reply.clone()]);
        for foreign in replies.iter().filter(|other| other.id != reply.id) {
            let refused = change(&world, shelf, Act::Delete(foreign.id)).await.unwrap();
            assert_eq!(refused, CannedVerdict::Refuse(Refusal::NotFound));
        }
    }
    assert_eq!(list(&world, &[]).await, []);
    let removed = change(&world, &shelves[1], Act::Delete(replies[1].id)).await.unwrap();
    assert_eq!(removed, CannedVerdict::Remove(replies[1].id));
    assert_eq!(list(&world, &shelves[1..2]).await, []);
    assert_eq!(list(&world, &shelves[..1]).await, [replies[0].clone()]);
}

/// Changes of one shelf at once follow one another: one shortcut is taken once, the bound holds.
pub async fn changes_of_a_shelf_follow_one_another<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let verdicts = race(20, |n| {
        let world = world.clone();
        async move {
            let request = request("hi", &n.to_string());
            change(&world, &Shelf::Team, Act::Put(request)).await.unwrap()
        }
    })
    .await;
    let written = |verdict: &&CannedVerdict| matches!(verdict, CannedVerdict::Write(_));
    assert_eq!(verdicts.iter().filter(written).count(), 1);
    for n in 1..MAX_CANNED - 2 {
        put(&world, &Shelf::Team, &request(&n.to_string(), "x")).await;
    }
    let verdicts = race(10, |n| {
        let world = world.clone();
        async move {
            let request = request(&format!("more-{n}"), "x");
            change(&world, &Shelf::Team, Act::Put(request)).await.unwrap()
        }
    })
    .await;
    assert_eq!(verdicts.iter().filter(written).count(), 2);
    assert_eq!(list(&world, &[Shelf::Team]).await.len(), MAX_CANNED);
}

/// A verdict that breaks the table's keys is refused, and nothing is written.
pub async fn an_impossible_reply_is_not_stored<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let first = put(&world, &Shelf::Team, &request("hi", "hello")).await;
    let second = put(&world, &Shelf::Team, &request("yo", "hello")).await;
    let twice = CannedReply { shortcut: "hi".into(), ..second.clone() };
    let refused = world
        .stores
        .canned
        .change(&Shelf::Team, &|_, _| CannedVerdict::Write(twice.clone()), world.ids.as_ref())
        .await;
    assert!(matches!(refused, Err(StoreFault::Internal { .. })), "{refused:?}");
    assert_eq!(list(&world, &[Shelf::Team]).await, [first, second]);
}

enum Act {
    Put(CannedRequest),
    Delete(CannedId),
}

fn own(id: &str) -> Shelf {
    Shelf::Own(admin(id))
}

fn request(shortcut: &str, content: &str) -> CannedRequest {
    CannedRequest {
        id: None,
        shortcut: shortcut.to_owned(),
        title: String::new(),
        content: content.to_owned(),
    }
}

async fn change(world: &World, shelf: &Shelf, act: Act) -> Result<CannedVerdict, StoreFault> {
    let now = world.clock.now();
    world
        .stores
        .canned
        .change(
            shelf,
            &|present, ids| match &act {
                Act::Put(request) => decide_put(present, shelf, request, now, ids),
                Act::Delete(id) => decide_delete(present, *id),
            },
            world.ids.as_ref(),
        )
        .await
}

async fn put(world: &World, shelf: &Shelf, request: &CannedRequest) -> CannedReply {
    match change(world, shelf, Act::Put(request.clone())).await.expect("answered") {
        CannedVerdict::Write(reply) => reply,
        other => panic!("not written: {other:?}"),
    }
}

async fn list(world: &World, shelves: &[Shelf]) -> Vec<CannedReply> {
    world.stores.canned.list(shelves).await.expect("readable")
}
