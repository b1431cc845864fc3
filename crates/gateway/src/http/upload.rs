//! `POST /api/v1/uploads`: an image for a session, refused on the stream (CC-18).

mod form;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use kefu_core::{Caller, InvalidId, SessionId};
use kefu_desk::DeskError;
use kefu_protocol::http::UploadAnswer;
use kefu_upload::{StoredUpload, UploadError};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::Gateway;
use crate::http::admission::{Admitted, Authenticated};
use crate::http::error::HttpError;
use form::{Form, Kind, Part};

/// Files being received at once: each is held in memory until it is stored (L1).
pub(crate) const AT_ONCE: usize = 64;
/// How long one more waits, unread, for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// The session may be named here or in the form.
#[derive(Deserialize)]
pub(crate) struct Target {
    #[serde(rename = "sessionId")]
    session_id: Option<String>,
}

/// A file with the session that its sender may write to.
struct Received {
    session: SessionId,
    file: Bytes,
}

/// What an upload holds until it is stored.
struct Turn {
    _admitted: Admitted,
    _permit: OwnedSemaphorePermit,
}

pub(crate) async fn create(
    admitted: Admitted,
    Authenticated(caller): Authenticated,
    State(gateway): State<Arc<Gateway>>,
    target: Result<Query<Target>, QueryRejection>,
    request: Request,
) -> Result<(StatusCode, Json<UploadAnswer>), HttpError> {
    let Query(target) = target.map_err(|_| HttpError::bad_request("sessionId is given twice"))?;
    let named = target.session_id.as_deref().map(parse_session).transpose()?;
    gateway.limits.upload(&caller.person())?;
    let turn = take_turn(&gateway, admitted).await?;
    let mut form = Form::open(request, gateway.config.upload_bytes).await?;
    let received = match receive(&gateway, &caller, named, &mut form).await {
        Ok(received) => received,
        Err(refusal) => {
            form.discard_rest(&gateway);
            return Err(refusal);
        }
    };
    let stored = store(gateway, turn, caller, received).await?;
    Ok((StatusCode::CREATED, Json(UploadAnswer::from(&stored))))
}

/// A body that nobody reads costs no memory: TCP holds it back at its sender.
async fn take_turn(gateway: &Gateway, admitted: Admitted) -> Result<Turn, HttpError> {
    let permit = timeout(TURN_WITHIN, Arc::clone(&gateway.uploads).acquire_owned()).await;
    match permit {
        Ok(Ok(permit)) => Ok(Turn { _admitted: admitted, _permit: permit }),
        Ok(Err(_)) | Err(_) => Err(HttpError::overloaded()),
    }
}

/// Reads the form to its end: nothing is stored of one that is broken behind its file.
async fn receive(
    gateway: &Gateway,
    caller: &Caller,
    mut named: Option<SessionId>,
    form: &mut Form,
) -> Result<Received, HttpError> {
    let mut received = None;
    while let Some(part) = form.next_part().await? {
        match part.kind() {
            Kind::Other => part.skip().await?,
            Kind::SessionId if received.is_some() => {
                return Err(HttpError::bad_request("sessionId must come before the file"));
            }
            Kind::SessionId => named = Some(agreed(named, &part.short_text().await?)?),
            Kind::File if received.is_some() => {
                return Err(HttpError::bad_request("one file at a time"));
            }
            Kind::File => {
                // Before its first byte is read: who may not upload is not listened to (A3).
                let session = gateway.desk.upload_target(caller, named).await?;
                received = Some(Received { session, file: receive_file(gateway, part).await? });
            }
        }
    }
    received.ok_or_else(|| HttpError::bad_request("the file is missing"))
}

async fn receive_file(gateway: &Gateway, mut part: Part<'_>) -> Result<Bytes, HttpError> {
    let mut file = gateway.desk.uploads().receive();
    while let Some(chunk) = part.chunk().await? {
        file.push(&chunk).map_err(UploadError::from)?;
    }
    Ok(file.into_bytes())
}

/// The session of the form's field, which must not contradict one that was named before.
fn agreed(named: Option<SessionId>, text: &str) -> Result<SessionId, HttpError> {
    let session = parse_session(text)?;
    if named.is_some_and(|other| other != session) {
        return Err(HttpError::bad_request("two different sessions are named"));
    }
    Ok(session)
}

/// In a task of its own: a client that hangs up never cancels a write half-way.
async fn store(
    gateway: Arc<Gateway>,
    turn: Turn,
    caller: Caller,
    Received { session, file }: Received,
) -> Result<StoredUpload, HttpError> {
    let tracker = gateway.tracker.clone();
    let write = async move {
        let stored = gateway.desk.upload(&caller, session, file).await;
        drop(turn);
        stored
    };
    let outcome: Result<_, DeskError> =
        tracker.spawn(write).await.map_err(|error| HttpError::internal(error.to_string()))?;
    Ok(outcome?)
}

fn parse_session(text: &str) -> Result<SessionId, HttpError> {
    text.parse().map_err(|error: InvalidId| HttpError::bad_request(error.to_string()))
}
