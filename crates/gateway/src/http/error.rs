//! From every refusal to its HTTP answer: the one place.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kefu_core::{ErrorCode, TraceId};
use kefu_desk::DeskError;
use kefu_protocol::http::{ErrorBody, status};
use kefu_upload::UploadError;

use crate::auth::AuthError;
use crate::limits::RetryAfter;

/// When a client of an overloaded process should try again.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

/// A refusal on its way out. [`render`] makes the answer of it.
#[derive(Debug, Clone)]
pub(crate) struct HttpError {
    code: ErrorCode,
    status: StatusCode,
    /// For clients.
    message: String,
    retry_after: Option<Duration>,
    /// For the log only.
    cause: Option<String>,
}

impl HttpError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let status =
            StatusCode::from_u16(status(code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, status, message: message.into(), retry_after: None, cause: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "there is nothing here")
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(ErrorCode::Overloaded, "too many requests are being worked on")
    }

    /// A defect of kefu; `cause` is logged, not told.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let error = Self::new(ErrorCode::Internal, "the request could not be processed");
        Self { cause: Some(cause.into()), ..error }
    }

    /// The answer to a request whose handler panicked.
    pub(crate) fn panicked() -> Response {
        Self::internal("a handler panicked").into_response()
    }

    /// The same refusal under a status that says more than its code.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn from_domain(code: ErrorCode, message: String, error: &dyn Error) -> Self {
        Self { cause: Some(chain(error)), ..Self::new(code, message) }
    }
}

impl From<DeskError> for HttpError {
    fn from(error: DeskError) -> Self {
        Self::from_domain(error.code(), error.outward(), &error)
    }
}

impl From<UploadError> for HttpError {
    fn from(error: UploadError) -> Self {
        DeskError::from(error).into()
    }
}

impl From<AuthError> for HttpError {
    fn from(error: AuthError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<RetryAfter> for HttpError {
    fn from(RetryAfter(wait): RetryAfter) -> Self {
        let error = Self::new(ErrorCode::RateLimited, "too many requests, wait a little");
        Self { retry_after: Some(wait), ..error }
    }
}

impl IntoResponse for HttpError {
    /// Only carries the refusal to [`render`], which knows the trace.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer as clients see it, logged once if the fault is ours.
pub(crate) fn render(error: HttpError, trace: &TraceId) -> Response {
    let HttpError { code, status, message, retry_after, cause } = error;
    if status.is_server_error() {
        tracing::warn!(trace_id = %trace, %code, cause = cause.as_deref(), "request failed");
    }
    let mut body = ErrorBody::new(code, message, trace.clone());
    let pause = retry_after.or_else(|| pause_after(code));
    if let Some(pause) = pause {
        body = body.with_retry_after(pause);
    }
    let mut response = (status, Json(body)).into_response();
    let headers = response.headers_mut();
    if let Some(pause) = pause {
        let seconds = pause.as_millis().div_ceil(1000);
        headers
            .extend(HeaderValue::from_str(&seconds.to_string()).map(|s| (header::RETRY_AFTER, s)));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The answer where no route is.
pub(crate) async fn not_found() -> HttpError {
    HttpError::not_found()
}

/// The answer of a route to a method that it does not have.
pub(crate) async fn method_not_allowed() -> HttpError {
    HttpError::bad_request("this address does not take this method")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
}

/// These two always say when to come back (`protocol.md`).
fn pause_after(code: ErrorCode) -> Option<Duration> {
    matches!(code, ErrorCode::RateLimited | ErrorCode::Overloaded).then_some(OVERLOAD_PAUSE)
}

/// The error with its sources, as the log wants it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
