//! Copies of owners, open sessions, loads and the line, each with its row's version (A1, Q1).

use async_trait::async_trait;
use fred::types::Value;
use futures_util::{TryStreamExt as _, stream};
use kefu_assignment::{BoardPage, LoadBoard, LoadCopy, SessionCopy};
use kefu_core::{AdminId, SessionId, StoreFault, UserId};
use kefu_session::Status;

use crate::error::unreadable;
use crate::link::Link;
use crate::script::Script;

static APPLY_SESSIONS: Script =
    Script::new("apply_sessions", include_str!("lua/apply_sessions.lua"));
static APPLY_LOADS: Script = Script::new("apply_loads", include_str!("lua/apply_loads.lua"));
static LIST_OPEN: Script = Script::new("list_open", include_str!("lua/list_open.lua"));

/// Rows a script takes at once. Nothing else runs meanwhile, so it must be over in a millisecond.
const ROWS: usize = 64;

/// Scripts on their way at once. The server runs them one by one, and others' commands in between.
const AT_ONCE: usize = 8;

/// About how many sessions a page holds.
const PAGE: u32 = 500;

/// How long an ended session's version is remembered against writers that come late.
const REMEMBER_ENDED_SECONDS: u32 = 3_600;

/// [`LoadBoard`] in Redis.
#[derive(Debug)]
pub(crate) struct RedisLoadBoard {
    link: Link,
}

impl RedisLoadBoard {
    pub(crate) const fn new(link: Link) -> Self {
        Self { link }
    }

    async fn apply_sessions(&self, rows: &[SessionCopy]) -> Result<(), StoreFault> {
        let names = self.link.keys();
        let mut keys = vec![names.line(), names.open_sessions()];
        let mut args = vec![REMEMBER_ENDED_SECONDS.to_string()];
        for row in rows {
            keys.push(names.session_version(row.session_id));
            keys.push(names.session_owner(row.session_id));
            keys.push(names.active_session(&row.user_id));
            args.push(row.version.to_string());
            args.push(status(row.status).to_owned());
            args.push(row.session_id.to_string());
            args.push(member(row.session_id));
            args.push(row.priority.saturating_neg().to_string());
            args.push(row.admin_id.as_ref().map(ToString::to_string).unwrap_or_default());
        }
        self.link.run(&APPLY_SESSIONS, keys, args).await
    }

    async fn apply_loads(&self, rows: &[LoadCopy]) -> Result<(), StoreFault> {
        let names = self.link.keys();
        let mut keys = Vec::with_capacity(rows.len() * 2);
        let mut args = Vec::with_capacity(rows.len() * 2);
        for row in rows {
            keys.push(names.agent_version(&row.admin_id));
            keys.push(names.agent_load(&row.admin_id));
            args.push(row.version.to_string());
            args.push(row.load.to_string());
        }
        self.link.run(&APPLY_LOADS, keys, args).await
    }
}

#[async_trait]
impl LoadBoard for RedisLoadBoard {
    async fn apply(&self, sessions: &[SessionCopy], agents: &[LoadCopy]) -> Result<(), StoreFault> {
        // In any order: each row goes only over an older version of itself.
        let sessions = stream::iter(sessions.chunks(ROWS).map(Ok));
        sessions.try_for_each_concurrent(AT_ONCE, |rows| self.apply_sessions(rows)).await?;
        let agents = stream::iter(agents.chunks(ROWS).map(Ok));
        agents.try_for_each_concurrent(AT_ONCE, |rows| self.apply_loads(rows)).await
    }

    async fn find_owner(&self, session: SessionId) -> Result<Option<AdminId>, StoreFault> {
        let key = self.link.keys().session_owner(session);
        read("find_owner", self.link.get("find_owner", key).await?)
    }

    async fn find_active_session(&self, user: &UserId) -> Result<Option<SessionId>, StoreFault> {
        let key = self.link.keys().active_session(user);
        read("find_active_session", self.link.get("find_active_session", key).await?)
    }

    async fn find_load(&self, admin: &AdminId) -> Result<Option<u32>, StoreFault> {
        let key = self.link.keys().agent_load(admin);
        read("find_load", self.link.get("find_load", key).await?)
    }

    async fn line(&self, limit: u32) -> Result<Vec<SessionId>, StoreFault> {
        let members = self.link.first_of("line", self.link.keys().line(), limit).await?;
        let ids = members.iter().map(|member| session_of(member));
        ids.collect::<Option<_>>().ok_or_else(|| unreadable("line"))
    }

    async fn list_open(&self, cursor: Option<u64>) -> Result<BoardPage, StoreFault> {
        let keys = vec![self.link.keys().open_sessions()];
        let args = vec![cursor.unwrap_or(0).to_string(), PAGE.to_string()];
        let answer: Value = self.link.run(&LIST_OPEN, keys, args).await?;
        page(answer).ok_or_else(|| unreadable(LIST_OPEN.name))
    }
}

const fn status(status: Status) -> &'static str {
    match status {
        Status::Waiting => "0",
        Status::Active => "1",
        Status::Ended => "2",
    }
}

/// Of fixed width, so that equal scores are ordered by id (Q1).
fn member(session: SessionId) -> String {
    format!("{:020}", session.get())
}

fn session_of(member: &str) -> Option<SessionId> {
    member.trim_start_matches('0').parse().ok()
}

fn read<T: std::str::FromStr>(
    operation: &'static str,
    text: Option<String>,
) -> Result<Option<T>, StoreFault> {
    text.map(|text| text.parse().map_err(|_| unreadable(operation))).transpose()
}

fn page(answer: Value) -> Option<BoardPage> {
    let Value::Array(parts) = answer else { return None };
    let [cursor, ids]: [Value; 2] = parts.try_into().ok()?;
    let cursor: u64 = cursor.convert().ok()?;
    let ids: Vec<String> = ids.convert().ok()?;
    let sessions = ids.iter().map(|id| id.parse().ok()).collect::<Option<_>>()?;
    Some(BoardPage { sessions, next: (cursor != 0).then_some(cursor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_ordered_as_ids_are() {
        let ids = [1, 9, 10, 99, i64::MAX - 1, i64::MAX].map(|raw| SessionId::new(raw).unwrap());
        let members = ids.map(member);
        assert!(members.is_sorted());
        for (id, member) in ids.iter().zip(&members) {
            assert_eq!(member.len(), 20);
            assert_eq!(session_of(member), Some(*id));
        }
    }
}
