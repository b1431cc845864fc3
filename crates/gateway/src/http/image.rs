//! `GET /uploads/chat/…`: an image, through a signed link only (U1).

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::Gateway;
use crate::http::admission::Admitted;
use crate::http::error::HttpError;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What signs a path. Anything wrong with it is a link that is not valid.
#[derive(Deserialize)]
pub(crate) struct Link {
    #[serde(default)]
    exp: i64,
    #[serde(default)]
    sig: String,
}

/// The stored bytes, so that nothing but a picture can come of them (B97): the type of the content,
/// never sniffed, without any right for what might hide in it, and saved rather than opened when
/// visited. Pages still show it in an `<img>`.
pub(crate) async fn show(
    _admitted: Admitted,
    State(gateway): State<Arc<Gateway>>,
    uri: Uri,
    Path((_, name)): Path<(String, String)>,
    link: Result<Query<Link>, QueryRejection>,
) -> Result<Response, HttpError> {
    let Query(link) = link.map_err(|_| HttpError::forbidden("the link is not valid"))?;
    let uploads = gateway.desk.uploads();
    // The path as it was written: an image has exactly one.
    let image = uploads.open(uri.path(), link.exp, &link.sig).await?;
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .map_err(|error| HttpError::internal(error.to_string()))?;
    let now = gateway.desk.clock().now().0.div_euclid(1000);
    let seconds = link.exp.saturating_sub(now).max(0);
    let caching = HeaderValue::from_str(&format!("private, max-age={seconds}, immutable"))
        .map_err(|error| HttpError::internal(error.to_string()))?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(image.mime.mime())),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (CONTENT_DISPOSITION, disposition),
        (CACHE_CONTROL, caching),
        (RESOURCE_POLICY, HeaderValue::from_static("cross-origin")),
    ];
    Ok((headers, image.bytes).into_response())
}
