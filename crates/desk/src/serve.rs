//! Serving a session: claim, transfer, end, rate.

use std::sync::Arc;

use kefu_assignment::Origin;
use kefu_core::text::check_free_text;
use kefu_core::{AdminId, Caller, Role, SessionId, TraceId, limit};
use kefu_messaging::{SessionOffer, Side};
use kefu_session::{Rating, RatingRequest, Refusal, Session, Updated, decide_rating};

use crate::{Desk, DeskError, Stores};

impl Desk {
    /// Takes a waiting session (Z6), under the lock of Z4. `give` queues the answer for the claimant's
    /// connection: it is called in the session's turn, so that whoever takes the session away again is
    /// told after it, never before (A3).
    ///
    /// # Errors
    /// As `Assignments::claim`; `conflict` also when the claimant was told meanwhile that the session is
    /// gone again.
    pub async fn claim(
        &self,
        caller: &Caller,
        session: SessionId,
        origin: Origin,
        trace: &TraceId,
        give: impl FnOnce(&SessionOffer) + Send,
    ) -> Result<(), DeskError> {
        let (Role::Agent, Some(admin)) = (caller.role(), caller.admin_id()) else {
            return Err(Refusal::Forbidden.into());
        };
        let user = self.find(session).await?.user.user_id;
        let claim = self.assignments.claim(caller, session, origin, trace.clone());
        let claimed = self.under_assign_lock(&user, claim).await?;
        let offer = offer(&self.stores, &claimed).await?;
        let _turn = self.turns.of(&session).lock().await;
        if !self.turns.owners().take(session, claimed.version, admin) {
            return Err(Refusal::Conflict.into());
        }
        give(&offer);
        Ok(())
    }

    /// Hands a session to a colleague (Z5).
    ///
    /// # Errors
    /// As `Assignments::transfer`; `content_too_long` for the note.
    pub async fn transfer(
        &self,
        caller: &Caller,
        session: SessionId,
        target: &AdminId,
        note: Option<String>,
        origin: Origin,
        trace: &TraceId,
    ) -> Result<(), DeskError> {
        if let Some(note) = &note {
            check_free_text(note, limit::MAX_NOTE_CHARS)?;
        }
        let transfer =
            self.assignments.transfer(caller, session, target, note, origin, trace.clone());
        Ok(transfer.await?)
    }

    /// Ends a session; again gives the same answer (S4).
    ///
    /// # Errors
    /// As `Assignments::end`.
    pub async fn end(
        &self,
        caller: &Caller,
        session: SessionId,
        origin: Origin,
        trace: &TraceId,
    ) -> Result<Session, DeskError> {
        Ok(self.assignments.end(caller, session, origin, trace.clone()).await?)
    }

    /// Judges a session; a later rating replaces the earlier (S3).
    ///
    /// # Errors
    /// `forbidden` unless a user, `not_found` unless theirs, `content_too_long` for the comment.
    pub async fn rate(
        &self,
        caller: &Caller,
        session: SessionId,
        request: &RatingRequest,
        trace: &TraceId,
    ) -> Result<Rating, DeskError> {
        check_free_text(&request.comment, limit::MAX_RATING_CHARS)?;
        let context = self.source.context(trace.clone());
        let updated = self
            .stores
            .sessions
            .update(
                session,
                &|session, ids| decide_rating(session, caller, request, &context, ids),
                self.source.ids(),
            )
            .await
            .inspect_err(|fault| self.source.recover(fault))?;
        match updated {
            Updated::Written(session, events) => {
                self.source.publish(events);
                Ok(session.rating.ok_or(Refusal::Conflict)?)
            }
            Updated::Kept(session) => Ok(session.rating.ok_or(Refusal::Conflict)?),
            Updated::Refused(refusal) => Err(refusal.into()),
            Updated::Missing if caller.user_id().is_none() => Err(Refusal::Forbidden.into()),
            Updated::Missing => Err(Refusal::NotFound.into()),
        }
    }
}

/// What a session's new agent is shown of it (Z5).
pub(crate) async fn offer(stores: &Stores, session: &Session) -> Result<SessionOffer, DeskError> {
    let unread = stores.messages.count_unread(&[session.id], Side::Agent).await?;
    Ok(SessionOffer {
        session_id: session.id,
        user: session.user_info(),
        source: session.source.clone(),
        unread: unread.get(&session.id).copied().unwrap_or(0),
        last_seq: session.last_seq,
        note: note(stores, session.id).await?,
    })
}

/// What a colleague said when they handed the session to its present agent (Z5).
pub(crate) async fn note(stores: &Stores, session: SessionId) -> Result<Option<String>, DeskError> {
    let records = stores.assignments.list_records(session).await?;
    Ok(records.into_iter().next_back().and_then(|record| record.note))
}

impl Desk {
    /// The drain, for embedders that trigger passes of their own.
    #[must_use]
    pub const fn drain(&self) -> &Arc<kefu_assignment::Drain> {
        &self.drain
    }
}
