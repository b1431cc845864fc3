//! What a process stands on, whichever profile it runs: the ports, the ids, and how to let them go.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kefu_core::{Clock, IdSource, NodeName};
use kefu_desk::{Cluster, Coordination, Stores};
use kefu_gateway::Readiness;
use kefu_postgres::PgStore;
use kefu_sqlite::SqliteStore;
use rand::TryRng as _;
use rand::rngs::SysRng;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Profile};
use crate::{cluster, embedded};

/// `node.name` where nobody chose one.
const DEFAULT_NODE: &str = "gateway";

/// The adapters behind the ports.
pub(crate) struct Ground {
    pub(crate) stores: Stores,
    pub(crate) coordination: Coordination,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) ready: Arc<dyn Readiness>,
    pub(crate) storage: Storage,
}

impl Ground {
    /// Opens what the profile says.
    pub(crate) async fn open(
        config: &Config,
        node: &NodeName,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self> {
        match config.profile {
            Profile::Embedded => embedded::open(config, clock).await,
            Profile::Cluster => cluster::open(config, node, clock).await,
        }
    }
}

/// What is let go last: the desk writes until it has stopped (L3).
pub(crate) enum Storage {
    /// A file.
    Embedded(SqliteStore),
    /// A server, and the tasks that keep this process's leases and connections.
    Cluster {
        /// The database.
        store: PgStore,
        /// The adapters' tasks.
        tasks: TaskTracker,
        /// Ends them.
        stop: CancellationToken,
    },
}

impl Storage {
    /// Gives leases back and closes the database.
    pub(crate) async fn close(&self) {
        match self {
            Self::Embedded(store) => store.close().await,
            Self::Cluster { store, tasks, stop } => {
                stop.cancel();
                tasks.close();
                tasks.wait().await;
                store.close().await;
            }
        }
    }
}

/// This process's name. In a cluster two of one name would take each other's leases and words, so
/// there the default is what the process is, with an ending of its own.
pub(crate) fn node_name(config: &Config, role: &str) -> Result<NodeName> {
    let name = match config.profile {
        Profile::Cluster if config.node.name == DEFAULT_NODE => {
            let ending = SysRng.try_next_u32().context("cannot draw a random name")?;
            format!("{role}-{ending:08x}")
        }
        Profile::Cluster | Profile::Embedded => config.node.name.clone(),
    };
    NodeName::new(&name).context("node.name")
}
