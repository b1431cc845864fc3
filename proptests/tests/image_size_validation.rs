//! PBT 2.10, image size validation: a file of up to 2,097,152 bytes is accepted, one byte more is
//! refused with `payload_too_large` and leaves nothing behind (CC-18). What counts is the file, not
//! what is left of it after metadata was removed, and not how it is cut into chunks.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::io::Cursor;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use image::{DynamicImage, ImageFormat};
use kefu_core::{ErrorCode, ManualClock, Person, Timestamp};
use kefu_desk::Stores;
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{Receiver, SchemaMistake, SizeFlaw, caught_in_schema, image_size};
use kefu_proptests::{Violation, caught, ensure, generated, in_every_schema, on_every_backend};
use kefu_session::Session;
use kefu_testkit::{World, race};
use kefu_upload::{BlobStore, LinkSigner, ObjectBlobStore, Uploads};
use object_store::memory::InMemory;
use proptest::prelude::*;

on_every_backend!(
    the_limit_is_exact_to_the_byte,
    any_size_around_the_limit_is_judged_by_the_file,
    uploads_at_once_are_each_judged,
    a_limit_one_too_low_is_caught,
    a_limit_one_too_high_is_caught,
    a_limit_on_what_is_stored_is_caught,
    a_limit_on_each_chunk_is_caught,
    a_refusal_after_the_store_is_caught,
);

in_every_schema!(a_table_without_the_accepted_is_caught);

const LIMIT: usize = 2_097_152;
const FORMATS: [ImageFormat; 3] = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif];

/// A session, and what stores images for it.
#[derive(Clone)]
struct Scene {
    stores: Stores,
    session: Session,
    blobs: Arc<dyn BlobStore>,
    receiver: Arc<dyn Receiver>,
}

impl Scene {
    async fn new(stores: Stores, receiver: impl Fn(Uploads) -> Arc<dyn Receiver>) -> Self {
        let session = World::new(stores.clone()).open("u1", 0).await;
        let blobs: Arc<dyn BlobStore> =
            Arc::new(ObjectBlobStore::new(Arc::new(InMemory::new()), ""));
        let signer = LinkSigner::new(&[7; 32], Duration::from_secs(900)).expect("long enough");
        let ledger = Arc::clone(&stores.uploads);
        let clock = Arc::new(ManualClock::default());
        let uploads = Uploads::new(Arc::clone(&blobs), ledger, signer, clock);
        Self { stores, session, blobs, receiver: receiver(uploads) }
    }

    async fn real<B: Backend>(backend: &B) -> Self {
        Self::new(backend.stores(), |uploads| Arc::new(uploads)).await
    }

    /// Uploads the file in chunks of that size; it must be accepted or refused by its length.
    async fn check_file(&self, file: &Bytes, chunk: usize) -> Result<(), Violation> {
        let len = file.len();
        let chunks: Vec<_> =
            (0..len).step_by(chunk).map(|at| file.slice(at..len.min(at + chunk))).collect();
        let uploader = Person::User(self.session.user.user_id.clone());
        let answer = self.receiver.take(self.session.id, uploader, &chunks).await;
        let answer = answer.map_err(|error| error.code());
        match answer {
            Ok(stored) => {
                ensure(len <= LIMIT, || format!("size: {len} bytes were accepted"))?;
                let row = self.stores.uploads.find(&stored.path).await.expect("readable");
                let row = row.ok_or_else(|| Violation::new("size: accepted without a row"))?;
                ensure(row.session_id == self.session.id, || "size: another session's".into())
            }
            Err(code) => {
                let is_right = len > LIMIT && code == ErrorCode::PayloadTooLarge;
                ensure(is_right, || format!("size: {len} bytes were refused with {code:?}"))
            }
        }
    }

    /// As many rows and images as were accepted: a refusal leaves nothing behind.
    async fn check_kept(&self, accepted: usize) -> Result<(), Violation> {
        let end = Timestamp(i64::MAX);
        let rows = self.stores.uploads.list_orphans(end, 1_000).await.expect("readable").len();
        let blobs = self.blobs.list(None, 1_000).await.expect("readable").len();
        let holds = (rows, blobs) == (accepted, accepted);
        ensure(holds, || format!("kept: {rows} rows and {blobs} images of {accepted} accepted"))
    }
}

/// A picture of exactly `len` bytes in the given format, padded with what a server removes.
fn padded(format: ImageFormat, len: usize) -> Bytes {
    let picture = encode(format);
    let missing = len - picture.len();
    let file = match format {
        ImageFormat::Png => insert(&picture, AFTER_HEADER, &png_comment(missing)),
        ImageFormat::Jpeg => insert(&picture, 2, &jpeg_comments(missing)),
        // Behind the end nothing is structured.
        _ => [&picture[..], &vec![b'x'; missing]].concat(),
    };
    assert_eq!(file.len(), len);
    file.into()
}

fn encode(format: ImageFormat) -> Vec<u8> {
    let picture = match format {
        ImageFormat::Gif => DynamicImage::new_rgba8(16, 16),
        _ => DynamicImage::new_rgb8(16, 16),
    };
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).expect("encoded");
    file.into_inner()
}

/// Where the first chunk behind the header of a PNG begins.
const AFTER_HEADER: usize = 8 + 25;

fn insert(file: &[u8], at: usize, piece: &[u8]) -> Vec<u8> {
    [&file[..at], piece, &file[at..]].concat()
}

/// One `tEXt` chunk of `len` bytes in all.
fn png_comment(len: usize) -> Vec<u8> {
    let covered = [&b"tEXt"[..], &vec![b'x'; len - 12]].concat();
    let payload = u32::try_from(len - 12).expect("short");
    [&payload.to_be_bytes()[..], &covered, &crc32(&covered).to_be_bytes()].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| {
            (0..8)
                .fold(byte, |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
        })
        .collect();
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| table[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8))
}

/// Comment segments of `len` bytes in all.
fn jpeg_comments(len: usize) -> Vec<u8> {
    let mut segments = Vec::with_capacity(len);
    while segments.len() < len {
        let left = len - segments.len();
        // Whatever is left for the last one has room for its own four bytes.
        let segment = if left > 60_000 { 50_000 } else { left };
        segments.extend([0xff, 0xfe]);
        segments.extend(u16::try_from(segment - 2).expect("short").to_be_bytes());
        segments.resize(segments.len() + segment - 4, b'x');
    }
    segments
}

// (a) The specification's own falsification.

async fn the_limit_is_exact_to_the_byte<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_three_sizes(&Scene::real(&backend).await).await
}

async fn check_three_sizes(scene: &Scene) -> Result<(), Violation> {
    for (index, format) in FORMATS.into_iter().enumerate() {
        for len in [2_097_151, 2_097_152, 2_097_153] {
            scene.check_file(&padded(format, len), 65_536).await?;
        }
        scene.check_kept(2 * (index + 1)).await?;
    }
    Ok(())
}

// (b) Generated: formats, sizes around the limit and far from it, chunks.

async fn any_size_around_the_limit_is_judged_by_the_file<B: Backend>() -> Result<(), Violation> {
    let sizes = prop_oneof![
        4 => near(3),
        1 => near(70_000),
        1 => 10_000..LIMIT,
        1 => LIMIT + 1..2 * LIMIT,
    ];
    let chunks = prop::sample::select(vec![16_384, 65_536, 1_000_003, LIMIT, 2 * LIMIT]);
    let files = (prop::sample::select(FORMATS.to_vec()), sizes, chunks);
    generated(file!(), B::CASES.min(24), &files, async |(format, len, chunk)| {
        let backend = B::start().await;
        let scene = Scene::real(&backend).await;
        check_one(&scene, format, len, chunk).await
    })
}

const fn near(bytes: usize) -> RangeInclusive<usize> {
    LIMIT - bytes..=LIMIT + bytes
}

async fn check_one(
    scene: &Scene,
    format: ImageFormat,
    len: usize,
    chunk: usize,
) -> Result<(), Violation> {
    scene.check_file(&padded(format, len), chunk).await?;
    scene.check_kept(usize::from(len <= LIMIT)).await
}

// (c) Concurrent.

async fn uploads_at_once_are_each_judged<B: Backend>() -> Result<(), Violation> {
    let backend = B::start().await;
    check_at_once(&Scene::real(&backend).await).await
}

/// Eighteen uploads at once, a third of them a byte too large.
async fn check_at_once(scene: &Scene) -> Result<(), Violation> {
    let files: Vec<_> = FORMATS
        .into_iter()
        .flat_map(|format| [LIMIT - 1, LIMIT, LIMIT + 1].map(|len| padded(format, len)))
        .collect();
    let answers = race(18, |n| {
        let (scene, file) = (scene.clone(), files[n % 9].clone());
        async move { scene.check_file(&file, 65_536).await }
    })
    .await;
    answers.into_iter().collect::<Result<(), Violation>>()?;
    scene.check_kept(12).await
}

// Shown able to fail.

/// A receiver with that flaw must fail the check on a fresh backend.
async fn flaw_is_caught<B: Backend>(
    flaw: SizeFlaw,
    because: &str,
    check: impl AsyncFnOnce(&Scene) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let backend = B::start().await;
    let scene = Scene::new(backend.stores(), |uploads| image_size(uploads, flaw)).await;
    caught(check(&scene).await, because)
}

/// As [`flaw_is_caught`], by every part; the generated one for a file of `len` bytes.
async fn all_parts_catch<B: Backend>(
    flaw: SizeFlaw,
    because: &str,
    len: usize,
) -> Result<(), Violation> {
    flaw_is_caught::<B>(flaw, because, check_three_sizes).await?;
    flaw_is_caught::<B>(flaw, because, async |scene| check_gif(scene, len).await).await?;
    flaw_is_caught::<B>(flaw, because, check_at_once).await
}

async fn check_gif(scene: &Scene, len: usize) -> Result<(), Violation> {
    check_one(scene, ImageFormat::Gif, len, LIMIT).await
}

async fn a_limit_one_too_low_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(SizeFlaw::OneTooFew, "2097152 bytes were refused", LIMIT).await
}

async fn a_limit_one_too_high_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(SizeFlaw::OneTooMany, "2097153 bytes were accepted", LIMIT + 1).await
}

async fn a_limit_on_what_is_stored_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(SizeFlaw::StoredBytes, "2097153 bytes were accepted", LIMIT + 1).await
}

async fn a_limit_on_each_chunk_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(SizeFlaw::PerChunk, "2097153 bytes were accepted", LIMIT + 1).await
}

async fn a_refusal_after_the_store_is_caught<B: Backend>() -> Result<(), Violation> {
    all_parts_catch::<B>(SizeFlaw::RefusedLate, "kept:", LIMIT + 1).await
}

async fn a_table_without_the_accepted_is_caught<B: Backend>() -> Result<(), Violation> {
    let because = "accepted without a row";
    let real = async |stores| Scene::new(stores, |uploads| Arc::new(uploads)).await;
    let check = async |stores, _: &_| check_three_sizes(&real(stores).await).await;
    caught_in_schema::<B>(SchemaMistake::LosesUpload, because, check).await?;
    let check = async |stores, _: &_| check_gif(&real(stores).await, LIMIT).await;
    caught_in_schema::<B>(SchemaMistake::LosesUpload, because, check).await?;
    let check = async |stores, _: &_| check_at_once(&real(stores).await).await;
    caught_in_schema::<B>(SchemaMistake::LosesUpload, because, check).await
}
