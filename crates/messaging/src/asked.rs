//! What a store reads before a batch of sends is decided.

use std::collections::BTreeSet;

use kefu_core::{SessionId, UserId};
use kefu_session::{Session, Status};
use kefu_upload::{UploadPath, UploadRow};

use crate::{AppendRequest, AppendSnapshot, AppendTarget, Draft, Message};

/// Everything that some request of a batch asks for, each once and in order.
#[derive(Debug, Clone, Default)]
pub struct Asked<'a> {
    /// The sessions that targets name.
    pub sessions: BTreeSet<SessionId>,
    /// The users whose open session is a target.
    pub users: BTreeSet<&'a UserId>,
    /// Kind and id of a sender, with the key that the sender used (T2).
    pub keys: BTreeSet<(&'a str, &'a str, &'a str)>,
    /// The images that drafts show.
    pub uploads: BTreeSet<UploadPath>,
}

impl<'a> Asked<'a> {
    /// What `batch` asks for.
    #[must_use]
    pub fn by(batch: &'a [AppendRequest]) -> Self {
        let mut asked = Self::default();
        for request in batch {
            match &request.target {
                AppendTarget::Session(id) => asked.sessions.insert(*id),
                AppendTarget::OpenSessionOf(user) => asked.users.insert(user),
            };
            let sender = &request.sender;
            asked.keys.insert((sender.kind(), sender.id(), request.client_msg_id.as_str()));
            if let Draft::Image(path) = &request.draft {
                asked.uploads.insert(*path);
            }
        }
        asked
    }

    /// What was found of it: the sessions, those of `users` among them, the messages under `keys`, and the uploads.
    #[must_use]
    pub fn found(
        &self,
        sessions: Vec<Session>,
        stored: Vec<Message>,
        uploads: Vec<UploadRow>,
    ) -> AppendSnapshot {
        let mut snapshot = AppendSnapshot { stored, ..AppendSnapshot::default() };
        for session in sessions {
            let is_open = session.status != Status::Ended;
            if is_open && self.users.contains(&session.user.user_id) {
                snapshot.open.insert(session.user.user_id.clone(), session.id);
            }
            snapshot.sessions.insert(session.id, session);
        }
        snapshot.uploads.extend(uploads.into_iter().map(|row| (row.path, row.session_id)));
        snapshot
    }
}
