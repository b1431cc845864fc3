//! Rating a session (S3, CC-21): only its user, also after the end, later replaces earlier.

use kefu_core::{Caller, IdSource, Timestamp};
use kefu_events::{Envelope, Event, EventContext};

use crate::{Access, Rating, Refusal, Session, SessionVerdict, access};

/// What the user says. The comment's length is checked where the frame is read.
#[derive(Debug, Clone)]
pub struct RatingRequest {
    /// 1 … 5.
    pub score: u8,
    /// May be empty.
    pub comment: String,
}

/// Decides a rating.
#[must_use]
pub fn decide_rating(
    session: &Session,
    caller: &Caller,
    request: &RatingRequest,
    context: &EventContext,
    ids: &dyn IdSource,
) -> SessionVerdict {
    if let Err(refusal) = access(session, caller, Access::Rate, false) {
        return SessionVerdict::Refuse(refusal);
    }
    if !(1..=5).contains(&request.score) {
        return SessionVerdict::Refuse(Refusal::BadRequest("rating must be 1 to 5"));
    }
    let rated = Session {
        rating: Some(rating(request, context.now)),
        version: session.version + 1,
        ..session.clone()
    };
    let event = Event::SessionRated {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        rating: request.score,
        version: rated.version,
    };
    SessionVerdict::Write(rated, vec![Envelope::new(event, context, ids)])
}

fn rating(request: &RatingRequest, time: Timestamp) -> Rating {
    Rating { score: request.score, comment: request.comment.clone(), time }
}
