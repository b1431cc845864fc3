//! Whether the parts behind the gateway answer.

use std::sync::Arc;

use async_trait::async_trait;
use kefu_gateway::Readiness;
use kefu_messaging::MessageStore;

/// Asks the store for one cheap read. The gateway limits how long that may take.
pub(crate) struct StoreReadiness {
    pub(crate) messages: Arc<dyn MessageStore>,
}

#[async_trait]
impl Readiness for StoreReadiness {
    async fn check(&self) -> Result<(), &'static str> {
        self.messages.highest_id().await.map(|_| ()).map_err(|fault| {
            tracing::warn!(%fault, "store is not ready");
            "store"
        })
    }
}
