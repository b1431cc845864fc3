//! Who may add a note, and what becomes of repeating it.

use kefu_console::{FreshNote, Note, NoteRequest, NoteSnapshot, NoteVerdict, decide_note};
use kefu_core::{
    Caller, ClientMsgId, ConnId, IdSource as _, ManualIds, NoteId, SessionId, Timestamp,
};
use kefu_events::{Event, EventContext};
use kefu_session::{OpenVerdict, Refusal, Session, decide_open};
use kefu_testkit::build::{admin, agent_caller, node, supervisor_caller, trace, user, user_caller};

fn context() -> EventContext {
    EventContext { now: Timestamp(7), source: node(), trace_id: trace() }
}

fn waiting(ids: &ManualIds) -> Session {
    let verdict = decide_open(None, &user("u1", 0), "web", 0, &context(), ids);
    let OpenVerdict::Insert(session, _) = verdict else { panic!("a new session") };
    session
}

fn request(session: SessionId, key: Option<&str>) -> NoteRequest {
    NoteRequest {
        session_id: session,
        content: "VIP, be quick".into(),
        key: key.map(|key| ClientMsgId::new(key).expect("valid")),
        origin: Some(ConnId(3)),
    }
}

fn refusal(snapshot: &NoteSnapshot, author: &Caller, request: &NoteRequest) -> Option<Refusal> {
    match decide_note(snapshot, author, request, &context(), &ManualIds::default()) {
        NoteVerdict::Refuse(refusal) => Some(refusal),
        NoteVerdict::Store(..) | NoteVerdict::Repeat(_) => None,
    }
}

/// A3: notes ask for what reading asks for, and for more than a user can have.
#[test]
fn a_note_asks_for_the_right_to_read() {
    let ids = ManualIds::default();
    let waiting = waiting(&ids);
    let (ann, bob) = (admin("ann"), admin("bob"));
    let active = waiting.assigned(&ann, Timestamp(1)).expect("open");
    let ended = active.ended(&agent_caller(&ann).actor(), Timestamp(2)).expect("open");
    let later = waiting.assigned(&bob, Timestamp(3)).expect("open");
    let of =
        |session: &Session| NoteSnapshot { session: Some(session.clone()), ..Default::default() };
    let request = request(active.id, None);
    let owner = user_caller(&active.user.user_id);
    for snapshot in [of(&active), of(&ended), NoteSnapshot::default()] {
        assert_eq!(refusal(&snapshot, &owner, &request), Some(Refusal::Forbidden), "B95");
    }
    let cases = [
        (of(&active), &ann, None),
        (of(&ended), &ann, None),
        (of(&active), &bob, Some(Refusal::NotFound)),
        (of(&ended), &bob, Some(Refusal::NotFound)),
        (of(&waiting), &ann, Some(Refusal::NotFound)),
        (NoteSnapshot::default(), &ann, Some(Refusal::NotFound)),
        (NoteSnapshot { users_open: Some(later.clone()), ..of(&ended) }, &bob, None),
        (NoteSnapshot { users_open: Some(later), ..of(&active) }, &bob, Some(Refusal::NotFound)),
    ];
    for (number, (snapshot, agent, expected)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(&snapshot, &agent_caller(agent), &request), expected, "case {number}");
    }
    for snapshot in [of(&waiting), of(&active), of(&ended)] {
        assert_eq!(refusal(&snapshot, &supervisor_caller("boss"), &request), None);
    }
}

#[test]
fn a_note_is_its_authors_and_above_the_last() {
    let ids = ManualIds::default();
    let active = waiting(&ids).assigned(&admin("ann"), Timestamp(1)).expect("open");
    let last = NoteId::new(ids.next_after(0) + 5_000_000_000).expect("positive");
    let snapshot =
        NoteSnapshot { session: Some(active.clone()), last: Some(last), ..Default::default() };
    let request = request(active.id, Some("k"));
    let author = agent_caller(&admin("ann"));
    let NoteVerdict::Store(note, event) =
        decide_note(&snapshot, &author, &request, &context(), &ids)
    else {
        panic!("stored")
    };
    assert!(note.id > last);
    assert_eq!((note.admin_id.as_str(), note.name.as_str()), ("ann", "ann"));
    assert_eq!((note.content.as_str(), note.time), ("VIP, be quick", Timestamp(7)));
    let expected =
        Event::NoteAdded { session_id: active.id, note_id: note.id, admin_id: admin("ann") };
    assert_eq!(event.event, expected);
    let fresh = event.attachment::<FreshNote>().expect("attached");
    assert_eq!((fresh.note.as_ref(), fresh.origin), (&note, Some(ConnId(3))));
    assert!(!format!("{event:?}").contains("VIP"), "events carry no texts (N1)");
}

#[test]
fn a_repeated_key_gives_the_stored_note_whatever_became_of_the_session() {
    let ids = ManualIds::default();
    let active = waiting(&ids).assigned(&admin("bob"), Timestamp(1)).expect("open");
    let earlier = Note {
        id: NoteId::next_after(&ids, 0),
        session_id: active.id,
        admin_id: admin("ann"),
        name: "ann".into(),
        key: ClientMsgId::new("k").ok(),
        content: "VIP, be quick".into(),
        time: Timestamp(1),
    };
    let snapshot = NoteSnapshot {
        session: Some(active.clone()),
        earlier: Some(earlier.clone()),
        ..Default::default()
    };
    let author = agent_caller(&admin("ann"));
    let same = request(active.id, Some("k"));
    let verdict = decide_note(&snapshot, &author, &same, &context(), &ids);
    assert!(matches!(verdict, NoteVerdict::Repeat(note) if note == earlier));
    let other = NoteRequest { content: "something else".into(), ..same };
    assert_eq!(refusal(&snapshot, &author, &other), Some(Refusal::Conflict));
}
