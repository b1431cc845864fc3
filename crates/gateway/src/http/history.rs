//! `GET /api/v1/sessions/{id}/messages`: a page, as `chat.history`.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use kefu_core::SessionId;
use kefu_protocol::http::{MessagesPage, MessagesQuery};
use kefu_upload::UploadPath;

use crate::Gateway;
use crate::http::admission::{Admitted, Authenticated};
use crate::http::error::HttpError;

/// Who may read the session is for the desk to say (A3).
pub(crate) async fn page(
    _admitted: Admitted,
    Authenticated(caller): Authenticated,
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    query: Result<Query<MessagesQuery>, QueryRejection>,
) -> Result<Json<MessagesPage>, HttpError> {
    let session: SessionId = id
        .parse()
        .map_err(|error: kefu_core::InvalidId| HttpError::bad_request(error.to_string()))?;
    let Query(query) = query.map_err(|_| {
        HttpError::bad_request("after_seq, before_seq and limit must be whole numbers")
    })?;
    let (window, limit) =
        query.window().map_err(|error| HttpError::bad_request(error.to_string()))?;
    let page = gateway.desk.history(&caller, session, window, limit).await?;
    let uploads = gateway.desk.uploads();
    let links = |path: &UploadPath| uploads.link(path);
    Ok(Json(MessagesPage::new(session, &page, &caller.person(), &links)))
}
