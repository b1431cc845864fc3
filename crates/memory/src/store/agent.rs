//! [`AgentDirectory`].

use async_trait::async_trait;
use kefu_core::{AdminId, StoreFault, Timestamp};
use kefu_presence::{Agent, AgentDirectory, Availability};

use crate::MemoryWorld;

#[async_trait]
impl AgentDirectory for MemoryWorld {
    async fn find(&self, admin: &AdminId) -> Result<Option<Agent>, StoreFault> {
        Ok(self.begin().await.agents.find(admin).cloned())
    }

    async fn list_online(&self) -> Result<Vec<Agent>, StoreFault> {
        let online = |agent: &&Agent| agent.availability == Availability::Online;
        Ok(self.begin().await.agents.all().filter(online).cloned().collect())
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        Ok(self.begin().await.agents.eligible().take(limit as usize).cloned().collect())
    }

    async fn list_live(&self) -> Result<Vec<Agent>, StoreFault> {
        Ok(self.begin().await.agents.all().filter(|agent| agent.live).cloned().collect())
    }

    async fn list_gone(&self, before: Timestamp) -> Result<Vec<Agent>, StoreFault> {
        let gone = |agent: &&Agent| {
            let long_gone = !agent.live && agent.gone_since.is_some_and(|since| since < before);
            let matters = agent.availability == Availability::Online || agent.active_sessions > 0;
            long_gone && matters
        };
        Ok(self.begin().await.agents.all().filter(gone).cloned().collect())
    }

    async fn list_after(
        &self,
        after: Option<&AdminId>,
        limit: u32,
    ) -> Result<Vec<Agent>, StoreFault> {
        Ok(self.begin().await.agents.after(after).take(limit as usize).cloned().collect())
    }
}
