//! Storing, opening and sweeping, with the crashes in between (CC-18, U1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{contains, encode, insert, jpeg_segment, png_chunk};
use async_trait::async_trait;
use bytes::Bytes;
use image::ImageFormat as Encoded;
use kefu_core::{
    Clock, ErrorCode, ManualClock, Person, SessionId, StoreFault, SystemClock, Timestamp, UserId,
};
use kefu_upload::{
    BlobEntry, BlobError, BlobStore, ImageFormat, LinkSigner, ObjectBlobStore, StoredUpload,
    SweepReport, UploadLedger, UploadPath, UploadRow, Uploads,
};
use object_store::memory::InMemory;
use sha2::Digest as _;

const MAX: usize = 2_097_152;
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug, Default)]
struct Ledger {
    rows: Mutex<BTreeMap<UploadPath, UploadRow>>,
    shown: Mutex<BTreeSet<UploadPath>>,
    is_down: Mutex<bool>,
}

impl Ledger {
    fn check(&self) -> Result<(), StoreFault> {
        match *self.is_down.lock().unwrap() {
            true => Err(StoreFault::unavailable("down")),
            false => Ok(()),
        }
    }

    fn is_orphan(&self, row: &UploadRow, created_before: Timestamp) -> bool {
        row.created_at < created_before && !self.shown.lock().unwrap().contains(&row.path)
    }
}

#[async_trait]
impl UploadLedger for Ledger {
    async fn record(&self, row: &UploadRow) -> Result<(), StoreFault> {
        self.check()?;
        self.rows.lock().unwrap().entry(row.path).or_insert_with(|| row.clone());
        Ok(())
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<UploadRow>, StoreFault> {
        self.check()?;
        Ok(self.rows.lock().unwrap().get(path).cloned())
    }

    async fn list_orphans(
        &self,
        created_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadPath>, StoreFault> {
        self.check()?;
        let rows = self.rows.lock().unwrap();
        let orphans = rows.values().filter(|row| self.is_orphan(row, created_before));
        Ok(orphans.map(|row| row.path).take(limit as usize).collect())
    }

    async fn forget(
        &self,
        path: &UploadPath,
        created_before: Timestamp,
    ) -> Result<bool, StoreFault> {
        self.check()?;
        let mut rows = self.rows.lock().unwrap();
        if rows.get(path).is_some_and(|row| self.is_orphan(row, created_before)) {
            rows.remove(path);
        }
        Ok(!rows.contains_key(path))
    }
}

/// Refuses to store, as a full disk does.
#[derive(Debug)]
struct FullDisk;

#[async_trait]
impl BlobStore for FullDisk {
    async fn put(&self, _: &UploadPath, _: Bytes) -> Result<(), BlobError> {
        Err(BlobError::Unavailable("no space".into()))
    }

    async fn find(&self, _: &UploadPath) -> Result<Option<Bytes>, BlobError> {
        Ok(None)
    }

    async fn delete(&self, _: &UploadPath) -> Result<(), BlobError> {
        Ok(())
    }

    async fn list(&self, _: Option<&UploadPath>, _: usize) -> Result<Vec<BlobEntry>, BlobError> {
        Ok(Vec::new())
    }
}

struct World {
    blobs: Arc<dyn BlobStore>,
    ledger: Arc<Ledger>,
    clock: Arc<ManualClock>,
    uploads: Uploads,
}

impl World {
    /// Begins at the machine's time, because that is what a blob store stamps its files with.
    fn new() -> Self {
        Self::over(Arc::new(ObjectBlobStore::new(Arc::new(InMemory::new()), "")))
    }

    fn over(blobs: Arc<dyn BlobStore>) -> Self {
        let ledger = Arc::new(Ledger::default());
        let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
        let signer = LinkSigner::new(b"0123456789abcdef", Duration::from_secs(900)).unwrap();
        let uploads = Uploads::new(blobs.clone(), ledger.clone(), signer, clock.clone());
        Self { blobs, ledger, clock, uploads }
    }

    async fn store(&self, file: impl Into<Bytes>) -> Result<StoredUpload, ErrorCode> {
        let uploader = Person::User(UserId::new("u1").unwrap());
        let stored = self.uploads.store(SessionId::new(1).unwrap(), uploader, file.into()).await;
        stored.map_err(|error| error.code())
    }

    async fn open(&self, link: &str) -> Result<(ImageFormat, Bytes), ErrorCode> {
        let (path, query) = link.split_once("?exp=").unwrap();
        let (expires_at, signature) = query.split_once("&sig=").unwrap();
        let opened = self.uploads.open(path, expires_at.parse().unwrap(), signature).await;
        opened.map(|image| (image.mime, image.bytes)).map_err(|error| error.code())
    }

    async fn blob_count(&self) -> usize {
        self.blobs.list(None, 10_000).await.unwrap().len()
    }
}

/// A real image of exactly `len` bytes: padded with a comment block that is removed again.
fn padded(format: Encoded, len: usize) -> Vec<u8> {
    let mut file = encode(format, 32, 32);
    match format {
        Encoded::Png => {
            let missing = len - file.len() - 12;
            insert(&file, crate::support::AFTER_IHDR, &png_chunk(b"tEXt", &vec![b'x'; missing]))
        }
        Encoded::Jpeg => {
            while len - file.len() > 60_000 {
                file = insert(&file, 2, &jpeg_segment(0xfe, &vec![b'x'; 50_000]));
            }
            let missing = len - file.len() - 4;
            insert(&file, 2, &jpeg_segment(0xfe, &vec![b'x'; missing]))
        }
        // Behind the end nothing is structured.
        _ => [&file[..], &vec![b'x'; len - file.len()]].concat(),
    }
}

#[tokio::test]
async fn the_size_of_the_file_is_limited_to_the_byte() {
    let world = World::new();
    for format in [Encoded::Png, Encoded::Jpeg, Encoded::Gif] {
        for len in [MAX - 1, MAX] {
            let file = padded(format, len);
            assert_eq!(file.len(), len);
            let stored = world.store(file).await.unwrap();
            assert!(stored.size < 10_000, "what was stored is the picture alone");
        }
        let refused = world.store(padded(format, MAX + 1)).await;
        assert_eq!(refused, Err(ErrorCode::PayloadTooLarge));
    }
    assert_eq!(world.blob_count().await, 6);
}

#[tokio::test]
async fn a_narrower_limit_holds_for_both_ways_in() {
    let mut world = World::new();
    world.uploads = world.uploads.with_max_bytes(100);
    let mut file = world.uploads.receive();
    file.push(&[0; 100]).unwrap();
    assert!(file.push(&[0]).is_err());
    assert_eq!(world.store(vec![0; 101]).await, Err(ErrorCode::PayloadTooLarge));
}

#[tokio::test]
async fn an_upload_is_recorded_and_opened_through_its_link() {
    let world = World::new();
    let plain = encode(Encoded::Jpeg, 40, 30);
    let photo = insert(&plain, 2, &jpeg_segment(0xfe, b"SECRET"));
    let stored = world.store(photo).await.unwrap();
    let (mime, bytes) = world.open(&stored.url).await.unwrap();

    assert_eq!((stored.mime, stored.width, stored.height), (ImageFormat::Jpeg, 40, 30));
    assert_eq!((mime, bytes.len() as u64), (ImageFormat::Jpeg, stored.size));
    assert!(!contains(&bytes, b"SECRET"));
    assert_eq!(UploadPath::parse_url(&stored.url), Some(stored.path));
    assert_eq!(world.uploads.link(&stored.path), stored.url);
    let row = world.ledger.find(&stored.path).await.unwrap().unwrap();
    assert_eq!(row.sha256, <[u8; 32]>::from(sha2::Sha256::digest(&bytes)));
    assert_eq!((row.mime, row.size, row.created_at), (mime, stored.size, world.clock.now()));
    assert_eq!(row.uploader.to_string(), "user:u1");
}

#[tokio::test]
async fn bad_files_leave_nothing_behind() {
    let world = World::new();
    let html = world.store("<!doctype html><script>alert(1)</script>").await;
    assert_eq!(html, Err(ErrorCode::UnsupportedMediaType));
    let cut = encode(Encoded::Png, 9, 9);
    let cut = world.store(cut[..cut.len() - 1].to_vec()).await;
    assert_eq!(cut, Err(ErrorCode::UnsupportedMediaType));
    assert_eq!(world.blob_count().await, 0);
    assert!(world.ledger.rows.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_link_opens_one_image_for_a_time() {
    let world = World::new();
    let stored = world.store(encode(Encoded::Png, 9, 9)).await.unwrap();
    let other = world.store(encode(Encoded::Png, 9, 9)).await.unwrap();
    let query = stored.url.split_once('?').unwrap().1;

    assert_eq!(world.open(&format!("{}?{query}", other.path)).await, Err(ErrorCode::Forbidden));
    for outside in ["/uploads/chat/../../kefu.db", "/etc/passwd", ""] {
        let opened = world.open(&format!("{outside}?{query}")).await;
        assert_eq!(opened, Err(ErrorCode::NotFound), "{outside}");
    }
    world.blobs.delete(&stored.path).await.unwrap();
    assert_eq!(world.open(&stored.url).await, Err(ErrorCode::NotFound));

    world.clock.advance(Duration::from_secs(1201));
    assert_eq!(world.open(&other.url).await, Err(ErrorCode::Forbidden));
    assert!(world.open(&world.uploads.link(&other.path)).await.is_ok());
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_records_nothing() {
    let world = World::over(Arc::new(FullDisk));
    let refused = world.store(encode(Encoded::Png, 9, 9)).await;
    assert_eq!(refused, Err(ErrorCode::Unavailable));
    assert!(world.ledger.rows.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_blob_without_a_row_goes_after_24_hours() {
    let world = World::new();
    *world.ledger.is_down.lock().unwrap() = true;
    let refused = world.store(encode(Encoded::Png, 9, 9)).await;
    assert_eq!(refused, Err(ErrorCode::Unavailable));
    assert_eq!(world.uploads.sweep().await.unwrap_err().code(), ErrorCode::Unavailable);
    assert_eq!(world.blob_count().await, 1, "nothing is deleted without the ledger's word");

    *world.ledger.is_down.lock().unwrap() = false;
    assert_eq!(world.uploads.sweep().await.unwrap(), SweepReport::default());
    world.clock.advance(DAY + Duration::from_secs(60));
    assert_eq!(world.uploads.sweep().await.unwrap(), SweepReport { rows: 0, blobs: 1 });
    assert_eq!(world.blob_count().await, 0);
}

#[tokio::test]
async fn an_image_that_no_message_shows_goes_after_24_hours() {
    let world = World::new();
    let shown = world.store(encode(Encoded::Png, 9, 9)).await.unwrap();
    let unused = world.store(encode(Encoded::Gif, 9, 9)).await.unwrap();
    world.ledger.shown.lock().unwrap().insert(shown.path);

    world.clock.advance(DAY);
    assert_eq!(world.uploads.sweep().await.unwrap(), SweepReport::default());
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.uploads.sweep().await.unwrap(), SweepReport { rows: 1, blobs: 0 });
    assert_eq!(world.ledger.find(&unused.path).await.unwrap(), None);
    assert!(world.open(&world.uploads.link(&shown.path)).await.is_ok());
    assert_eq!(world.blob_count().await, 1);
}

#[tokio::test]
async fn sweeps_are_bounded_and_reach_everything() {
    let world = World::new();
    let now = world.clock.now();
    for name in 0..600 {
        let path = UploadPath::with_name(now, name, ImageFormat::Png);
        world.blobs.put(&path, Bytes::from("x")).await.unwrap();
    }
    world.clock.advance(DAY + Duration::from_secs(60));
    let mut swept = Vec::new();
    for _ in 0..3 {
        swept.push(world.uploads.sweep().await.unwrap().blobs);
    }
    assert_eq!(swept, [256, 256, 88]);
    assert_eq!(world.blob_count().await, 0);

    let late = UploadPath::with_name(now, 0, ImageFormat::Png);
    world.blobs.put(&late, Bytes::from("x")).await.unwrap();
    assert_eq!(world.uploads.sweep().await.unwrap().blobs, 1, "begins again after the last page");
}
