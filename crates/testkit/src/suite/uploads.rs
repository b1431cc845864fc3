//! `UploadLedger`: rows of images, and that no message shows one that is gone (U1).

use std::time::Duration;

use kefu_core::{Clock, Person, Timestamp};
use kefu_messaging::AppendOutcome;
use kefu_session::{Refusal, Session};
use kefu_upload::{ImageFormat, UploadPath, UploadRow};

use crate::build::{admin, from_user, image, upload_row};
use crate::{Harness, World, race, stored};

/// Every field comes back as it was written, also after a restart.
pub async fn every_field_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let mut rows = Vec::new();
    for (n, mime) in ImageFormat::ALL.into_iter().enumerate() {
        let at = Timestamp(1_769_558_400_000 + 86_400_000 * i64::try_from(n).unwrap());
        rows.push(UploadRow {
            path: UploadPath::with_name(at, u128::MAX - n as u128, mime),
            mime,
            size: 2_097_152,
            sha256: std::array::from_fn(|i| u8::try_from(i * 8).unwrap()),
            width: 8_192,
            height: 1,
            ..row(&session, 0, at)
        });
    }
    rows[1].uploader = Person::Agent(admin("a1"));
    for row in &rows {
        world.stores.uploads.record(row).await.unwrap();
    }
    let world = world.restarted(&mut harness).await;
    for row in &rows {
        assert_eq!(world.stores.uploads.find(&row.path).await.unwrap().as_ref(), Some(row));
    }
    let unknown = UploadPath::with_name(Timestamp(0), 5, ImageFormat::Gif);
    assert_eq!(world.stores.uploads.find(&unknown).await.unwrap(), None);
}

/// Recording a recorded path succeeds and changes nothing, also at once.
pub async fn recording_again_changes_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let first = row(&session, 1, world.clock.now());
    world.stores.uploads.record(&first).await.unwrap();
    race(20, |n| {
        let (world, first) = (world.clone(), first.clone());
        async move {
            let other = UploadRow { size: n as u64 + 1, width: 1, ..first };
            world.stores.uploads.record(&other).await.unwrap();
        }
    })
    .await;
    assert_eq!(world.stores.uploads.find(&first.path).await.unwrap(), Some(first));
}

/// Orphans are old and shown by no message; the oldest first, up to the limit.
pub async fn orphans_are_listed_oldest_first<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let now = world.clock.now();
    let mut rows = Vec::new();
    // Names against the order of time, so that neither stands in for the other.
    for n in 0..5_u64 {
        let at = now.after(Duration::from_secs(n));
        rows.push(row(&session, 100 - u128::from(n), at));
    }
    for row in rows.iter().rev() {
        world.stores.uploads.record(row).await.unwrap();
    }
    show(&world, &session, "k", rows[1].path).await;
    let orphans = async |before: Timestamp, limit| {
        world.stores.uploads.list_orphans(before, limit).await.unwrap()
    };
    let all = now.after(Duration::from_secs(60));
    let expected = [0, 2, 3, 4].map(|n: usize| rows[n].path);
    assert_eq!(orphans(all, 10).await, expected);
    assert_eq!(orphans(all, 2).await, expected[..2]);
    assert_eq!(orphans(rows[3].created_at, 10).await, expected[..2], "before, not at");
    assert_eq!(orphans(now, 10).await, []);
}

/// `forget` decides: never a shown image, never one too young; a missing row counts as forgotten.
pub async fn only_old_unused_rows_are_forgotten<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let now = world.clock.now();
    let later = now.after(Duration::from_millis(1));
    let (shown, unused) = (row(&session, 1, now), row(&session, 2, now));
    world.stores.uploads.record(&shown).await.unwrap();
    world.stores.uploads.record(&unused).await.unwrap();
    show(&world, &session, "k", shown.path).await;
    let forget = async |path, before| world.stores.uploads.forget(&path, before).await.unwrap();
    assert!(!forget(shown.path, later).await);
    assert!(!forget(unused.path, now).await, "before, not at");
    assert!(forget(unused.path, later).await);
    assert!(forget(unused.path, later).await, "again");
    assert_eq!(world.stores.uploads.find(&unused.path).await.unwrap(), None);
    assert_eq!(world.stores.uploads.find(&shown.path).await.unwrap(), Some(shown));
    let sender = from_user(&session.user.user_id);
    let refused = world.append_one(image(session.id, &sender, "k2", unused.path)).await;
    assert!(matches!(refused, AppendOutcome::Refused(Refusal::BadRequest(_))));
}

/// Forgetting and sending at once: the message is stored and the row stays, or neither.
pub async fn forgetting_races_with_sending<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let sender = from_user(&session.user.user_id);
    let now = world.clock.now();
    let later = now.after(Duration::from_secs(1));
    for round in 0..20_u128 {
        let upload = row(&session, round, now);
        world.stores.uploads.record(&upload).await.unwrap();
        let answers = race(2, |n| {
            let (world, sender) = (world.clone(), sender.clone());
            let (path, id) = (upload.path, session.id);
            async move {
                if n == 0 {
                    return world.stores.uploads.forget(&path, later).await.unwrap();
                }
                let request = image(id, &sender, &round.to_string(), path);
                matches!(world.append_one(request).await, AppendOutcome::Stored(_))
            }
        })
        .await;
        assert_ne!(answers[0], answers[1], "forgotten or sent");
        let kept = world.stores.uploads.find(&upload.path).await.unwrap().is_some();
        assert_eq!(kept, answers[1]);
    }
}

fn row(session: &Session, name: u128, at: Timestamp) -> UploadRow {
    upload_row(session.id, &session.user.user_id, name, at)
}

async fn show(world: &World, session: &Session, key: &str, path: UploadPath) {
    let sender = from_user(&session.user.user_id);
    stored(world.append_one(image(session.id, &sender, key, path)).await);
}
