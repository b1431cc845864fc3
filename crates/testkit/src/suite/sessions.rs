//! `SessionStore`.

use crate::Harness;

/// S1: opening again gives the open session.
pub async fn opening_again_gives_the_open_session<H: Harness>() {
    let harness = H::start().await;
    let user = kefu_core::UserId::new("u1").unwrap();
    assert!(harness.stores().sessions.find_open(&user).await.unwrap().is_none());
}
