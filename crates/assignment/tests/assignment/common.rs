//! A world in memory, and what its tests ask again and again.

use std::sync::Arc;

use kefu_assignment::{AssignmentError, AssignmentStore, Assignments};
use kefu_core::{AdminId, ErrorCode, ManualClock};
use kefu_memory::MemoryWorld;
use kefu_session::Session;
use kefu_testkit::World;

pub(crate) fn world() -> World {
    World::new(MemoryWorld::new(Arc::new(ManualClock::default())).stores())
}

/// The services of `world` over another store of the same rows.
pub(crate) fn assignments_over(world: &World, store: Arc<dyn AssignmentStore>) -> Assignments {
    Assignments::new(
        store,
        Arc::clone(&world.stores.agents),
        Arc::clone(&world.stores.sessions),
        world.source(),
        10,
    )
}

/// The user's session, opened and claimed by `admin`.
pub(crate) async fn serve(world: &World, user: &str, admin: &AdminId) -> Session {
    let session = world.open(user, 0).await;
    world.claim(admin, session.id).await.expect("claimed")
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, AssignmentError>) -> ErrorCode {
    result.expect_err("refused").code()
}

pub(crate) async fn load(world: &World, admin: &AdminId) -> u32 {
    world.agent_row(admin).await.active_sessions
}
