//! Who may do what with a session (A3), as one pure function.

use kefu_core::Caller;

use crate::{Refusal, Session, Status};

/// What a caller wants of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// History and state.
    Read,
    /// Send a message, show typing, acknowledge, upload.
    Talk,
    /// End it.
    End,
    /// Hand it to a colleague.
    Transfer,
    /// Judge it.
    Rate,
}

/// Whether `caller` may have `wanted` of `session` (A3).
///
/// `owns_users_open_session`: the caller owns the open session of this session's user, which opens
/// that user's past sessions for reading while it lasts.
///
/// # Errors
/// [`Refusal::Forbidden`] when the role may never do this; [`Refusal::NotFound`] when the session
/// is not the caller's, exactly as if it did not exist.
pub fn access(
    session: &Session,
    caller: &Caller,
    wanted: Access,
    owns_users_open_session: bool,
) -> Result<(), Refusal> {
    role_allows(caller, wanted)?;
    match caller {
        Caller::User(user) => mine(user.user_id == session.user.user_id),
        // The agent recorded at the end keeps the session's name, so that ended sessions answer
        // `session_closed` and not `not_found` (S2).
        Caller::Agent(agent) => {
            let recorded = session.admin_id.as_ref() == Some(&agent.admin_id);
            let past = wanted == Access::Read && session.status == Status::Ended;
            mine(recorded || past && owns_users_open_session)
        }
        Caller::Supervisor(_) => Ok(()),
    }
}

/// Whether the caller's role may ever have `wanted`, of whatever session (A3).
///
/// # Errors
/// [`Refusal::Forbidden`]: also for a session that does not exist.
pub const fn role_allows(caller: &Caller, wanted: Access) -> Result<(), Refusal> {
    match (caller, wanted) {
        (Caller::User(_), Access::Transfer)
        | (Caller::Agent(_), Access::Rate)
        | (Caller::Supervisor(_), Access::Talk | Access::Rate) => Err(Refusal::Forbidden),
        (Caller::User(_), Access::Read | Access::Talk | Access::End | Access::Rate)
        | (Caller::Agent(_), Access::Read | Access::Talk | Access::End | Access::Transfer)
        | (Caller::Supervisor(_), Access::Read | Access::End | Access::Transfer) => Ok(()),
    }
}

const fn mine(is_mine: bool) -> Result<(), Refusal> {
    if is_mine { Ok(()) } else { Err(Refusal::NotFound) }
}
