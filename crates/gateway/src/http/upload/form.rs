//! A multipart form read from a client that may be slow, endless or gone.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use futures_util::StreamExt;
use kefu_core::ErrorCode;
use kefu_upload::FileTooLarge;
use tokio::time::{Instant, timeout, timeout_at};

use crate::Gateway;
use crate::http::error::HttpError;

/// Bytes of a form besides its file: boundaries, headers, the session's id.
const AROUND_FILE: u64 = 64 * 1024;
/// Bytes of a `sessionId`; the longest has 19.
const SESSION_ID_BYTES: usize = 64;
/// Between two chunks.
const SILENCE: Duration = Duration::from_secs(30);
/// From the first byte to the last, so that a trickle does not hold its place for hours: 2 MiB take
/// this long at 140 kbit/s.
const WHOLE: Duration = Duration::from_secs(120);
/// What a refused client may still send before the connection is cut, and for how long.
const DISCARD_BYTES: u64 = 8 * 1024 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(5);

/// A form on its way in.
pub(super) struct Form {
    multipart: Multipart,
    limits: Limits,
}

/// A field of the form. Only one at a time can be read.
pub(super) struct Part<'a> {
    field: Field<'a>,
    limits: &'a Limits,
}

/// What a field is for.
pub(super) enum Kind {
    SessionId,
    File,
    Other,
}

struct Limits {
    room: Room,
    deadline: Instant,
    max_bytes: u64,
}

/// How many bytes may still come.
#[derive(Clone)]
struct Room(Arc<AtomicU64>);

impl Form {
    /// Nothing is read yet. The form may be larger than `max_bytes` of file by what surrounds one.
    pub(super) async fn open(request: Request, max_bytes: u64) -> Result<Self, HttpError> {
        let room = Room(Arc::new(AtomicU64::new(max_bytes.saturating_add(AROUND_FILE))));
        let multipart = Multipart::from_request(metered(request, room.clone()), &())
            .await
            .map_err(|_| HttpError::bad_request("the body must be multipart/form-data"))?;
        let limits = Limits { room, deadline: Instant::now() + WHOLE, max_bytes };
        Ok(Self { multipart, limits })
    }

    pub(super) async fn next_part(&mut self) -> Result<Option<Part<'_>>, HttpError> {
        let limits = &self.limits;
        let field = limits.patiently(self.multipart.next_field()).await?;
        Ok(field.map(|field| Part { field, limits }))
    }

    /// Lets a refused client finish sending. A connection that is closed with bytes still coming is
    /// reset, and many clients then never read the answer that was already sent.
    pub(super) fn discard_rest(mut self, gateway: &Gateway) {
        self.limits.room.grant(DISCARD_BYTES);
        let closing = gateway.closing.clone();
        gateway.tracker.spawn(async move {
            let discard = async { while let Ok(Some(_)) = self.multipart.next_field().await {} };
            tokio::select! {
                () = closing.cancelled() => {}
                _ = timeout(DISCARD_FOR, discard) => {}
            }
        });
    }
}

impl Part<'_> {
    pub(super) fn kind(&self) -> Kind {
        match self.field.name() {
            Some("sessionId") => Kind::SessionId,
            Some("file") => Kind::File,
            Some(_) | None => Kind::Other,
        }
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        self.limits.patiently(self.field.chunk()).await
    }

    pub(super) async fn short_text(mut self) -> Result<String, HttpError> {
        let refusal = || HttpError::bad_request("not a valid sessionId");
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > SESSION_ID_BYTES {
                return Err(refusal());
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| refusal())
    }

    pub(super) async fn skip(mut self) -> Result<(), HttpError> {
        while self.chunk().await?.is_some() {}
        Ok(())
    }
}

impl Limits {
    async fn patiently<T>(
        &self,
        reading: impl Future<Output = Result<T, MultipartError>> + Send,
    ) -> Result<T, HttpError> {
        let until = self.deadline.min(Instant::now() + SILENCE);
        match timeout_at(until, reading).await {
            Ok(read) => read.map_err(|_| self.unreadable()),
            Err(_) => Err(HttpError::bad_request("the form took too long to arrive")
                .with_status(StatusCode::REQUEST_TIMEOUT)),
        }
    }

    fn unreadable(&self) -> HttpError {
        if self.room.is_spent() {
            let refusal = FileTooLarge { max_bytes: self.max_bytes };
            return HttpError::new(ErrorCode::PayloadTooLarge, refusal.to_string());
        }
        HttpError::bad_request("the form could not be read")
    }
}

impl Room {
    /// Whether `bytes` more fit. What does not fit spends the room.
    fn take(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(bytes))
        });
        taken.is_ok_and(|left| left >= bytes)
    }

    fn grant(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The request with a body that fails once its room is spent.
fn metered(request: Request, room: Room) -> Request {
    let (parts, body) = request.into_parts();
    let chunks = body.into_data_stream().map(move |chunk| {
        let chunk: Bytes = chunk.map_err(BoxError::from)?;
        let fits = room.take(chunk.len());
        fits.then_some(chunk).ok_or_else(|| BoxError::from("the form is too large"))
    });
    Request::from_parts(parts, Body::from_stream(chunks))
}
