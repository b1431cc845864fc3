//! Whose sessions are listed for whom (A3), and that what was said is found by itself.

use kefu_core::{Caller, ErrorCode, PageLimit, SessionId};
use kefu_desk::{DeskError, ListScope, ListedSession};
use kefu_messaging::SearchQuery;
use kefu_testkit::build::{admin, supervisor_caller, trace};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

async fn list(
    scene: &Scene,
    caller: &Caller,
    scope: ListScope,
    query: Option<&str>,
) -> Result<Vec<ListedSession>, DeskError> {
    let query = query.and_then(SearchQuery::parse);
    let list = scene.desk.list_sessions(caller, scope, query, None, PageLimit::MAX).await?;
    Ok(list.page.items)
}

async fn ids(scene: &Scene, caller: &Caller, scope: ListScope) -> Vec<SessionId> {
    let listed = list(scene, caller, scope, None).await.expect("allowed");
    listed.iter().map(|listed| listed.session.id).collect()
}

async fn code(scene: &Scene, caller: &Caller, scope: ListScope) -> Option<ErrorCode> {
    list(scene, caller, scope, None).await.err().map(|error| error.code())
}

/// `u1` was with `a1`, and is with `a2` now; both sessions.
async fn handed_on(scene: &Scene) -> (SessionId, SessionId) {
    let first = scene.talking().await;
    scene.say(&visitor("u1"), 1, first, "first").await;
    scene.agent("a2", 20, 0).await;
    scene.desk.end(&agent("a1"), first, NOWHERE, &trace()).await.expect("ended");
    scene.desk.agent_offline(&agent("a1"), false, NOWHERE, &trace()).await.expect("offline");
    scene.desk.agent_online(&agent("a2"), 5, NOWHERE, &trace()).await.expect("online");
    let second = scene.consult("u1", 1).await.session_id.expect("open");
    idle().await;
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn a_visitors_sessions_are_shown_to_who_may_read_them() {
    let scene = Scene::start();
    let (first, second) = handed_on(&scene).await;
    let boss = supervisor_caller("boss");
    let of = ListScope::Visitor;
    assert_eq!(ids(&scene, &agent("a2"), of(second)).await, [second, first], "A3: all of them");
    assert_eq!(ids(&scene, &agent("a2"), of(first)).await, [second, first]);
    assert_eq!(ids(&scene, &agent("a1"), of(first)).await, [first], "A3: only what was theirs");
    assert_eq!(code(&scene, &agent("a1"), of(second)).await, Some(ErrorCode::NotFound));
    assert_eq!(code(&scene, &agent("a3"), of(first)).await, Some(ErrorCode::NotFound));
    assert_eq!(ids(&scene, &boss, of(first)).await, [second, first]);
    let unknown = SessionId::new(1).expect("positive");
    assert_eq!(code(&scene, &boss, of(unknown)).await, Some(ErrorCode::NotFound));

    assert_eq!(ids(&scene, &agent("a1"), ListScope::Mine).await, [first]);
    assert_eq!(ids(&scene, &agent("a2"), ListScope::Mine).await, [second]);
    assert_eq!(ids(&scene, &boss, ListScope::All).await, [second, first]);
    assert_eq!(code(&scene, &agent("a1"), ListScope::All).await, Some(ErrorCode::Forbidden));
    for scope in [of(first), of(second), of(unknown), ListScope::Mine, ListScope::All] {
        assert_eq!(code(&scene, &visitor("u1"), scope).await, Some(ErrorCode::Forbidden));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_the_last_message_and_what_is_unread() {
    let scene = Scene::start();
    let (first, second) = handed_on(&scene).await;
    scene.say(&visitor("u1"), 1, second, "k1").await;
    scene.say(&agent("a2"), 20, second, "k2").await;
    scene.say(&visitor("u1"), 1, second, "k3").await;
    let listed = list(&scene, &supervisor_caller("boss"), ListScope::All, None).await;
    let listed = listed.expect("allowed");
    let seen: Vec<_> = listed
        .iter()
        .map(|listed| {
            let agent = listed.agent.as_ref().map(|agent| agent.admin_id.clone());
            let last = listed.last.as_ref().map(|message| message.content.as_str());
            (listed.session.id, agent, listed.unread, last)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (second, Some(admin("a2")), 2, Some("text k3")),
            (first, Some(admin("a1")), 0, Some("text first")),
        ]
    );
}

/// Without anybody asking: after a while in a session that goes on, soon after the end.
#[tokio::test(start_paused = true)]
async fn what_was_said_becomes_findable() {
    let scene = Scene::start().sweeping();
    let session = scene.talking().await;
    scene.say(&visitor("u1"), 1, session, "退款").await;
    let found = async |query: &str| {
        list(&scene, &agent("a1"), ListScope::Mine, Some(query)).await.expect("allowed").len()
    };
    scene.stay(&agent("a1"), 10, 32).await;
    assert_eq!(found("退款").await, 1);
    scene.say(&agent("a1"), 10, session, "再见").await;
    scene.stay(&agent("a1"), 10, 2).await;
    assert_eq!(found("再见").await, 0, "it is not written anew with every message");
    scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    pass(2.0).await;
    assert_eq!((found("再见").await, found("退款 再见").await), (1, 1));
}
