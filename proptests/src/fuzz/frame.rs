//! Frames of clients: whatever the text, `Inbound::parse` gives a frame that keeps the limits and means
//! the same when it is written again, or an error of the contract that repeats nothing of the text.

use kefu_core::ErrorCode;
use kefu_core::limit::MAX_MESSAGE_CHARS;
use kefu_messaging::Draft;
use kefu_protocol::{ClientFrame, FrameError, Inbound};

use super::Shape;
use crate::{Violation, ensure};

/// The reader under test.
pub type Parse = fn(&str, usize) -> Result<Inbound, FrameError>;

/// Frames.
pub const SHAPE: Shape = Shape {
    name: "frame",
    words: &[
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"18446744073709551616",
        b"\"\"",
        b"{}",
        b"[]",
        b",",
        b"\\u0000",
        b"\\ud800",
        b"\"ref\":7,",
        b"\"payload\":",
        b"\"event\":\"chat.ping\",",
        b"\"clientMsgId\":\"\",",
        b"\"sessionId\":\"0\",",
        b"\"rating\":6,",
        b"\xf0\x9f\x98\x80",
    ],
    mended: |bytes| bytes,
};

/// What `Inbound::parse` may refuse with.
const CODES: [ErrorCode; 5] = [
    ErrorCode::BadRequest,
    ErrorCode::UnknownEvent,
    ErrorCode::Unauthenticated,
    ErrorCode::ContentEmpty,
    ErrorCode::ContentTooLong,
];

/// Scalar values of the longest message of a refusal.
const MAX_TOLD: usize = 80;

/// Checks the real reader.
///
/// # Errors
/// What does not hold.
pub fn target(data: &[u8]) -> Result<(), Violation> {
    check(Inbound::parse, data)
}

/// Checks any reader.
///
/// # Errors
/// What does not hold.
pub fn check(parse: Parse, data: &[u8]) -> Result<(), Violation> {
    let text = String::from_utf8_lossy(data);
    match parse(&text, MAX_MESSAGE_CHARS) {
        Ok(inbound) => accepted(parse, &inbound),
        Err(error) => refused(&error),
    }
}

fn accepted(parse: Parse, inbound: &Inbound) -> Result<(), Violation> {
    let label = inbound.reference.as_ref().map(kefu_protocol::Ref::as_str);
    ensure(label.is_none_or(|label| label.chars().count() <= 64), || "ref: too long".into())?;
    if let ClientFrame::Send(send) = &inbound.frame
        && let Draft::Text(content) = &send.draft
    {
        let chars = content.chars().count();
        let fits = (1..=MAX_MESSAGE_CHARS).contains(&chars);
        ensure(fits, || format!("content: {chars} characters were accepted"))?;
    }
    let written = inbound.frame.encode(label);
    let again = parse(&written, MAX_MESSAGE_CHARS);
    ensure(again.as_ref() == Ok(inbound), || {
        format!("round trip: {inbound:?} was read again as {again:?}")
    })
}

fn refused(error: &FrameError) -> Result<(), Violation> {
    let FrameError { code, message, is_malformed, .. } = error;
    ensure(CODES.contains(code), || format!("code: {code} is not for frames"))?;
    ensure(!is_malformed || *code == ErrorCode::BadRequest, || format!("code: malformed, {code}"))?;
    let is_plain = message.len() <= MAX_TOLD && message.chars().all(|c| (' '..='~').contains(&c));
    ensure(is_plain && !message.contains(['{', '"']), || format!("repeats the text: {message}"))
}
