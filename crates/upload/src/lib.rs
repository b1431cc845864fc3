#![doc = include_str!("../README.md")]

mod bytes_reader;
mod error;
mod exif;
mod format;
mod gif;
mod jpeg;
mod ledger;
mod link;
mod object;
mod path;
mod png;
mod receive;
mod sanitize;
mod service;
mod store;

pub use error::UploadError;
pub use format::ImageFormat;
pub use ledger::{UploadLedger, UploadRow};
pub use link::{LinkError, LinkSigner, WeakSecret};
pub use object::ObjectBlobStore;
pub use path::{InvalidUploadPath, UploadPath};
pub use receive::{FileBuffer, FileTooLarge};
pub use sanitize::{CleanImage, ImageError, sanitize};
pub use service::{OpenedUpload, StoredUpload, SweepReport, Uploads};
pub use store::{BlobEntry, BlobError, BlobStore};
