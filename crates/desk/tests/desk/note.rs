//! Who is told of a private note, and who never is (B95).

use kefu_console::{Note, NoteRequest};
use kefu_core::{Caller, ConnId, ErrorCode, PageLimit, SessionId};
use kefu_desk::DeskError;
use kefu_testkit::build::{key, supervisor_caller, trace};

use crate::common::{NOWHERE, Scene, agent, idle, pass, visitor};

pub(crate) async fn note(
    scene: &Scene,
    by: &Caller,
    conn: u64,
    session: SessionId,
    text: &str,
) -> Result<Note, DeskError> {
    let request = NoteRequest {
        session_id: session,
        content: text.to_owned(),
        key: Some(key(text)),
        origin: Some(ConnId(conn)),
    };
    scene.desk.add_note(by, &request, &trace()).await
}

fn code<T>(outcome: Result<T, DeskError>) -> Option<ErrorCode> {
    outcome.err().map(|error| error.code())
}

#[tokio::test(start_paused = true)]
async fn those_who_may_read_the_session_are_told_and_no_user_is() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a1", 11, 0).await;
    scene.agent("a2", 20, 0).await;
    scene.supervisor("boss", 30).await;
    scene.supervisor("boss", 31).await;
    scene.consult("u1", 2).await;
    idle().await;
    scene.people.log().clear();

    note(&scene, &agent("a1"), 10, session, "by the agent").await.expect("added");
    idle().await;
    assert_eq!(scene.kinds(11), ["own note"], "the author's other device");
    assert_eq!((scene.kinds(30), scene.kinds(31)), (vec!["note"], vec!["note"]));
    for conn in [1, 2, 10, 20] {
        assert_eq!(scene.kinds(conn), [] as [&str; 0], "connection {conn}");
    }
    scene.people.log().clear();

    note(&scene, &supervisor_caller("boss"), 30, session, "by the boss").await.expect("added");
    note(&scene, &supervisor_caller("boss"), 30, session, "by the boss").await.expect("the same");
    pass(30.0).await;
    assert_eq!((scene.kinds(10), scene.kinds(11)), (vec!["note"], vec!["note"]), "once");
    assert_eq!((scene.kinds(30), scene.kinds(31)), (vec![], vec!["own note"]), "once");
    for conn in [1, 2, 20] {
        assert_eq!(scene.kinds(conn), [] as [&str; 0], "B95, A3: connection {conn}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_end_who_has_the_visitor_now_reads_and_writes_too() {
    let scene = Scene::start();
    let session = scene.talking().await;
    scene.agent("a2", 20, 0).await;
    assert_eq!(
        code(note(&scene, &agent("a2"), 20, session, "not yet").await),
        Some(ErrorCode::NotFound),
        "A3"
    );
    scene.desk.end(&agent("a1"), session, NOWHERE, &trace()).await.expect("ended");
    scene.desk.agent_offline(&agent("a1"), false, NOWHERE, &trace()).await.expect("offline");
    scene.desk.agent_online(&agent("a2"), 5, NOWHERE, &trace()).await.expect("online");
    let next = scene.consult("u1", 1).await.session_id.expect("open");
    idle().await;
    assert_ne!(next, session);
    scene.people.log().clear();

    note(&scene, &agent("a2"), 20, session, "about the last time").await.expect("added");
    idle().await;
    assert_eq!(scene.kinds(10), ["note"], "the agent recorded at the end");
    note(&scene, &agent("a1"), 10, session, "from then").await.expect("added");
    idle().await;
    assert_eq!(scene.kinds(20), ["note"], "who has the visitor now");
    let notes = scene.desk.list_notes(&agent("a2"), session, None, PageLimit::MAX).await;
    assert_eq!(notes.expect("readable").items.len(), 2);
    let foreign = note(&scene, &agent("a1"), 10, next, "no more").await;
    assert_eq!(code(foreign), Some(ErrorCode::NotFound), "A3");
}

#[tokio::test(start_paused = true)]
async fn users_have_no_part_in_notes() {
    let scene = Scene::start();
    let session = scene.talking().await;
    let user = visitor("u1");
    let unknown = SessionId::new(1).expect("positive");
    for session in [session, unknown] {
        let added = note(&scene, &user, 1, session, "x").await;
        assert_eq!(code(added), Some(ErrorCode::Forbidden));
        let listed = scene.desk.list_notes(&user, session, None, PageLimit::MAX).await;
        assert_eq!(code(listed), Some(ErrorCode::Forbidden));
    }
    for (text, expected) in
        [(" ", ErrorCode::ContentEmpty), (&"x".repeat(501), ErrorCode::ContentTooLong)]
    {
        let request =
            NoteRequest { session_id: session, content: text.to_owned(), key: None, origin: None };
        let added = scene.desk.add_note(&agent("a1"), &request, &trace()).await;
        assert_eq!(code(added), Some(expected), "A4");
    }
}
