//! Lists of sessions, past ones among them, and the task that keeps what was said findable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kefu_core::{AdminId, AgentInfo, Caller, Page, PageLimit, Role, SessionId, StoreFault, UserId};
use kefu_messaging::{Message, SearchQuery, SessionFilter, Side, Unindexed, Whose, Window};
use kefu_session::{Refusal, Session};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::read::not_for_users;
use crate::sweep::{every, tick};
use crate::{Desk, DeskError, Task};

/// Between two looks for what the index lacks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a transaction the task rests so many times as long as it took: whatever there is to index must
/// not cost those who chat.
const REST: u32 = 4;
/// A session that goes on is indexed this often: its entry is written anew each time.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Sessions in one transaction of the index.
const TOGETHER: u32 = 16;
/// Pages of one session read in one go; the rest follows in the next.
const PAGES: usize = 20;
/// How long the task stays with its process after the last sign of life.
const TASK_TTL: Duration = Duration::from_secs(5);

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope {
    /// Those of the user of this session.
    Visitor(SessionId),
    /// Those that the caller has, or had at the end.
    Mine,
    /// Everybody's.
    All,
}

/// A session in a list.
#[derive(Debug, Clone)]
pub struct ListedSession {
    /// The session.
    pub session: Session,
    /// Who has it, or had it at the end.
    pub agent: Option<AgentInfo>,
    /// The user's messages that nobody has read; 0 after the end.
    pub unread: u32,
    /// Its last message.
    pub last: Option<Message>,
}

/// A page of sessions.
#[derive(Debug, Clone)]
pub struct SessionList {
    /// The newest first.
    pub page: Page<ListedSession>,
    /// Whether any agent is online.
    pub agents_online: bool,
}

impl Desk {
    /// The sessions of `scope` below `before` that fit `query`, the newest first.
    ///
    /// # Errors
    /// `forbidden` for users, and for agents who ask for all; `not_found` for a session that the caller may not
    /// read (A3).
    pub async fn list_sessions(
        &self,
        caller: &Caller,
        scope: ListScope,
        query: Option<SearchQuery>,
        before: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<SessionList, DeskError> {
        not_for_users(caller)?;
        let whose = match scope {
            ListScope::Visitor(session) => {
                let session = self.readable(caller, session).await?;
                self.of_user(caller, session.user.user_id).await?
            }
            ListScope::Mine => Whose::Agent(caller.admin_id().ok_or(Refusal::Forbidden)?.clone()),
            ListScope::All if caller.role() == Role::Supervisor => Whose::All,
            ListScope::All => return Err(Refusal::Forbidden.into()),
        };
        let filter = SessionFilter { whose, query };
        let page = self.stores.search.list(&filter, before, limit).await?;
        let items = self.listed(page.items).await?;
        let agents_online = self.agents_online().await?;
        Ok(SessionList { page: Page { items, has_more: page.has_more }, agents_online })
    }

    /// Who has the user's open session reads all of that user's; another agent only their own (A3).
    async fn of_user(&self, caller: &Caller, user: UserId) -> Result<Whose, DeskError> {
        let Caller::Agent(agent) = caller else { return Ok(Whose::User(user)) };
        let open = self.stores.sessions.find_open(&user).await?;
        let owns_open = open.is_some_and(|open| open.is_owned_by(&agent.admin_id));
        Ok(match owns_open {
            true => Whose::User(user),
            false => Whose::UserWith(user, agent.admin_id.clone()),
        })
    }

    async fn listed(&self, sessions: Vec<Session>) -> Result<Vec<ListedSession>, DeskError> {
        let ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
        let open = sessions.iter().filter(|session| session.is_open());
        let open: Vec<_> = open.map(|session| session.id).collect();
        let mut last = self.stores.search.list_last(&ids).await?;
        let unread = match open.is_empty() {
            true => BTreeMap::new(),
            false => self.stores.messages.count_unread(&open, Side::Agent).await?,
        };
        let mut agents: BTreeMap<AdminId, Option<AgentInfo>> = BTreeMap::new();
        let mut listed = Vec::with_capacity(sessions.len());
        for session in sessions {
            let agent = match &session.admin_id {
                Some(admin) => self.agent_info(admin, &mut agents).await?,
                None => None,
            };
            listed.push(ListedSession {
                agent,
                unread: unread.get(&session.id).copied().unwrap_or(0),
                last: last.remove(&session.id),
                session,
            });
        }
        Ok(listed)
    }

    async fn agent_info(
        &self,
        admin: &AdminId,
        known: &mut BTreeMap<AdminId, Option<AgentInfo>>,
    ) -> Result<Option<AgentInfo>, StoreFault> {
        if let Some(agent) = known.get(admin) {
            return Ok(agent.clone());
        }
        let agent = self.stores.agents.find(admin).await?.map(|agent| agent.info);
        known.insert(admin.clone(), agent.clone());
        Ok(agent)
    }

    /// Keeps the index of what was said up to date, until `stop`.
    pub(crate) async fn sweep_index(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(LOOK_EVERY);
        while tick(&mut ticks, &stop).await {
            // Held between two looks too, else every process would look in turn.
            while self.has(Task::SearchIndex, TASK_TTL).await {
                let begun = Instant::now();
                let is_more = self.index_some().await.unwrap_or_else(|fault| {
                    tracing::warn!(%fault, "the search index is held up");
                    false
                });
                let rested = tokio::time::sleep(begun.elapsed() * REST);
                if stop.run_until_cancelled(rested).await.is_none() || !is_more {
                    break;
                }
            }
        }
    }

    /// Brings into the index what is behind, in one small transaction; whether there is more.
    async fn index_some(&self) -> Result<bool, StoreFault> {
        let now = self.clock().now();
        let behind = self.stores.search.list_behind(now.before(AGAIN_AFTER), TOGETHER).await?;
        let (mut entries, mut progress) = (Vec::new(), Vec::new());
        for unindexed in &behind {
            let messages = self.unindexed_messages(unindexed).await?;
            let (of_session, upto) = unindexed.index(&messages, now);
            entries.extend(of_session);
            progress.push(upto);
        }
        if progress.is_empty() {
            return Ok(false);
        }
        self.stores.search.write(&entries, &progress).await?;
        metrics::counter!("kefu_search_indexed_total").increment(progress.len() as u64);
        Ok(behind.len() == TOGETHER as usize)
    }

    async fn unindexed_messages(&self, unindexed: &Unindexed) -> Result<Vec<Message>, StoreFault> {
        let mut messages: Vec<Message> = Vec::new();
        for _ in 0..PAGES {
            let after = messages.last().map_or(unindexed.after(), |message: &Message| message.seq);
            let page = self
                .stores
                .messages
                .history(unindexed.session.id, Window::After(after), PageLimit::MAX)
                .await?;
            messages.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        Ok(messages)
    }
}
