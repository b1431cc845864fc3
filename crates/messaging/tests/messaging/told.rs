//! Every invariant of what people are told can be broken.

use std::collections::BTreeSet;
use std::sync::Arc;

use kefu_core::{MsgId, Page, Person, Seq, SessionId, Timestamp};
use kefu_messaging::invariant::{
    check_acknowledged, check_authors, check_held, check_resumed, check_told, check_undelivered,
};
use kefu_messaging::{Message, MessageStatus, MessageType, Push, RemovalReason, Sender, Side};
use kefu_session::invariant::Violation;
use kefu_testkit::build::{admin, from_agent, from_user, key, user};

fn session() -> SessionId {
    SessionId::new(7).expect("positive")
}

fn message(seq: i64, sender: Sender) -> Message {
    Message {
        msg_id: MsgId::new(seq).expect("positive"),
        session_id: session(),
        seq: Seq(seq),
        sender,
        client_msg_id: key(seq.to_string()),
        msg_type: MessageType::Text,
        content: seq.to_string(),
        status: MessageStatus::Pending,
        create_time: Timestamp(0),
    }
}

fn visitor() -> Sender {
    from_user(&user("u", 0).user_id)
}

fn texts(found: &[Violation]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn page(items: &[Message], has_more: bool) -> Page<Message> {
    Page { items: items.to_vec(), has_more }
}

#[test]
fn a_page_that_lacks_adds_or_hides_is_found() {
    let all: Vec<_> = (1..=4).map(|seq| message(seq, visitor())).collect();
    assert_eq!(check_resumed(&all, Seq(1), 3, &page(&all[1..], false)), []);
    assert_eq!(check_resumed(&all, Seq(1), 2, &page(&all[1..3], true)), []);
    for wrong in [page(&all[2..], false), page(&all, false), page(&all[1..], true)] {
        assert!(texts(&check_resumed(&all, Seq(1), 3, &wrong)).contains("above 1"));
    }
}

#[test]
fn what_was_delivered_or_is_ones_own_is_found_in_unread() {
    let had = Message { status: MessageStatus::Read, ..message(1, visitor()) };
    let failed = Message { status: MessageStatus::Failed, ..message(2, visitor()) };
    let own = message(3, from_agent(&admin("a")));
    let all = [had, failed, own];
    assert_eq!(check_undelivered(&all, Side::Agent, 50, &page(&all[1..2], false)), []);
    assert_eq!(check_undelivered(&all, Side::Agent, 50, &page(&all[..2], false)).len(), 1);
    assert_eq!(check_undelivered(&all, Side::Agent, 50, &page(&all[1..], false)).len(), 1);
}

#[test]
fn a_message_held_otherwise_than_stored_is_found() {
    let stored = [message(1, visitor())];
    let later = Message { status: MessageStatus::Read, ..stored[0].clone() };
    assert_eq!(check_held(&stored, [&later]), []);
    let other = Message { content: "x".into(), ..later.clone() };
    let unknown = message(2, visitor());
    assert_eq!(check_held(&stored, [&other, &unknown]).len(), 2);
}

#[test]
fn a_stranger_and_a_receipt_of_nobody_are_found() {
    let row = kefu_session::Session {
        id: session(),
        user: kefu_session::UserProfile {
            user_id: user("u", 0).user_id,
            name: "u".into(),
            avatar: None,
            vip: None,
        },
        status: kefu_session::Status::Waiting,
        admin_id: None,
        source: String::new(),
        balance: None,
        priority: 0,
        last_seq: Seq(0),
        last_msg_id: None,
        version: 1,
        started_at: Timestamp(0),
        queued_at: Timestamp(0),
        assigned_at: None,
        ended_at: None,
        ended_by: None,
        rating: None,
        noticed_at: None,
    };
    let owners = BTreeSet::from([admin("a")]);
    let own = [message(1, visitor()), message(2, from_agent(&admin("a")))];
    assert_eq!(check_authors(&row, &owners, &own), []);
    let foreign =
        [message(1, from_user(&user("v", 0).user_id)), message(2, from_agent(&admin("b")))];
    assert_eq!(check_authors(&row, &owners, &foreign).len(), 2);

    let had = [Message { status: MessageStatus::Delivered, ..message(1, visitor()) }];
    assert_eq!(check_acknowledged(&had, &BTreeSet::from([had[0].msg_id])), []);
    assert!(texts(&check_acknowledged(&had, &BTreeSet::new())).contains("by nobody"));
}

#[test]
fn what_the_other_side_others_or_former_owners_may_not_know_is_found() {
    let told =
        |sender, own| Push::Message { message: Arc::new(message(1, sender)), attempt: 1, own };
    let by_visitor = told(visitor(), false);
    let theirs = BTreeSet::from([session()]);
    let agent = Person::Agent(admin("a"));
    let person = Person::User(user("u", 0).user_id);
    let removed = Push::SessionRemoved { session_id: session(), reason: RemovalReason::Requeued };
    let list = Push::QueueList { entries: Arc::new([]), total: 0, version: 1 };

    assert_eq!(check_told(&agent, &theirs, &[by_visitor.clone(), list.clone()]), []);
    assert_eq!(check_told(&person, &theirs, &[told(visitor(), true)]), []);
    for (to, theirs, pushes, because) in [
        (&person, &theirs, vec![list], "not for that side"),
        (&person, &theirs, vec![removed.clone()], "not for that side"),
        (&person, &theirs, vec![by_visitor.clone()], "not for that side"),
        (&agent, &BTreeSet::new(), vec![by_visitor.clone()], "another's session"),
        (&agent, &theirs, vec![removed, by_visitor], "taken away"),
    ] {
        let found = texts(&check_told(to, theirs, &pushes));
        assert!(found.contains(because), "{found:?} lacks {because:?}");
    }
}
