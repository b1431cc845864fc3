//! What a visitor looks at, for who serves them. Relayed, never stored.

use kefu_console::PageView;
use kefu_core::{Caller, TraceId};
use kefu_events::traced;
use kefu_messaging::{Push, Side};
use kefu_session::Refusal;
use tracing::Span;

use crate::{Desk, DeskError};

impl Desk {
    /// Relays a visitor's page to the agent of their open session. Nobody is told while it waits.
    ///
    /// # Errors
    /// `forbidden` unless a user, `not_found` without an open session.
    pub async fn page(
        &self,
        caller: &Caller,
        page: PageView,
        trace: &TraceId,
    ) -> Result<(), DeskError> {
        let user = caller.user_id().ok_or(Refusal::Forbidden)?;
        let session = self.stores.sessions.find_open(user).await?.ok_or(Refusal::NotFound)?;
        let time = self.clock().now();
        let push = Push::Page { session_id: session.id, page: page.into(), time };
        // To who has it by then: the row may be old (A3).
        let pushed = self.pusher.push_to_side(&session, Side::Agent, &push, None);
        traced(Some(trace), Span::current(), pushed).await;
        Ok(())
    }
}
