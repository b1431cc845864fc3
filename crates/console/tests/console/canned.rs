//! Who writes which shelf, what a shortcut may be, and the order of the menu.

use kefu_console::{
    CannedReply, CannedRequest, CannedVerdict, Shelf, check_shortcut, decide_delete, decide_put,
    find_replies, own_shelf,
};
use kefu_core::limit::MAX_CANNED;
use kefu_core::{CannedId, ManualIds, Timestamp, UserId};
use kefu_session::Refusal;
use kefu_testkit::build::{admin, agent_caller, supervisor_caller, user_caller};

fn request(shortcut: &str, content: &str) -> CannedRequest {
    CannedRequest {
        id: None,
        shortcut: shortcut.into(),
        title: String::new(),
        content: content.into(),
    }
}

fn reply(raw: i64, shelf: Shelf, shortcut: &str, title: &str, content: &str) -> CannedReply {
    CannedReply {
        id: CannedId::new(raw).expect("positive"),
        shelf,
        shortcut: shortcut.into(),
        title: title.into(),
        content: content.into(),
        update_time: Timestamp(1),
    }
}

fn own() -> Shelf {
    Shelf::Own(admin("ann"))
}

fn put(present: &[CannedReply], request: &CannedRequest) -> CannedVerdict {
    decide_put(present, &own(), request, Timestamp(9), &ManualIds::default())
}

#[test]
fn agents_write_their_own_and_supervisors_the_teams() {
    assert_eq!(own_shelf(&agent_caller(&admin("ann"))), Ok(own()));
    assert_eq!(own_shelf(&supervisor_caller("boss")), Ok(Shelf::Team));
    let user = user_caller(&UserId::new("u1").expect("valid"));
    assert_eq!(own_shelf(&user), Err(Refusal::Forbidden));
}

#[test]
fn a_shortcut_can_be_typed() {
    for good in ["hi", "退款", "a/b", "😀", &"x".repeat(32)] {
        assert!(check_shortcut(good), "{good}");
    }
    for bad in ["", "/hi", "a b", "a\u{3000}b", "a\nb", "a\u{7}", &"x".repeat(33)] {
        assert!(!check_shortcut(bad), "{bad:?}");
    }
}

#[test]
fn a_shortcut_is_used_once_and_a_repeat_is_harmless() {
    let CannedVerdict::Write(first) = put(&[], &request("hi", "hello")) else { panic!("written") };
    let present = [first.clone()];
    assert_eq!(put(&present, &request("hi", "hello")), CannedVerdict::Keep(first.clone()));
    assert_eq!(put(&present, &request("hi", "bye")), CannedVerdict::Refuse(Refusal::Conflict));

    let changed = CannedRequest { id: Some(first.id), ..request("hi", "bye") };
    let expected =
        CannedReply { content: "bye".into(), update_time: Timestamp(9), ..first.clone() };
    assert_eq!(put(&present, &changed), CannedVerdict::Write(expected));

    let second = reply(first.id.get() + 1, own(), "bye", "", "x");
    let renamed = CannedRequest { id: Some(second.id), ..request("hi", "x") };
    assert_eq!(put(&[first, second], &renamed), CannedVerdict::Refuse(Refusal::Conflict));
}

#[test]
fn only_what_is_on_the_shelf_is_changed() {
    let present = [reply(5, own(), "hi", "", "hello")];
    let foreign = CannedId::new(6).expect("positive");
    let changed = CannedRequest { id: Some(foreign), ..request("yo", "x") };
    assert_eq!(put(&present, &changed), CannedVerdict::Refuse(Refusal::NotFound));
    assert_eq!(decide_delete(&present, foreign), CannedVerdict::Refuse(Refusal::NotFound));
    assert_eq!(decide_delete(&present, present[0].id), CannedVerdict::Remove(present[0].id));
}

#[test]
fn a_shelf_is_bounded() {
    let full: Vec<_> =
        (1..).take(MAX_CANNED).map(|n| reply(n, own(), &n.to_string(), "", "x")).collect();
    assert!(matches!(put(&full[1..], &request("one more", "x")), CannedVerdict::Write(_)));
    let verdict = put(&full, &request("one more", "x"));
    assert!(matches!(verdict, CannedVerdict::Refuse(Refusal::BadRequest(_))));
    let changed = CannedRequest { id: Some(full[3].id), ..request("4", "y") };
    assert!(matches!(put(&full, &changed), CannedVerdict::Write(_)), "changing needs no room");
}

#[test]
fn the_menu_offers_the_best_first() {
    let all = vec![
        reply(1, Shelf::Team, "refund", "Refund", "We pay it back"),
        reply(2, own(), "ref", "", "Your reference"),
        reply(3, own(), "bye", "", "REF: goodbye"),
        reply(4, own(), "x", "How to refund", "…"),
        reply(5, Shelf::Team, "Ref", "", "The team's reference"),
        reply(6, own(), "退款", "退款说明", "三天内到账"),
    ];
    let found = |query: &str| -> Vec<i64> {
        find_replies(all.clone(), query).iter().map(|reply| reply.id.get()).collect()
    };
    assert_eq!(found("/REF"), [2, 5, 1, 4, 3], "shortcut, name, content; own before the team's");
    assert_eq!(found(""), [3, 2, 5, 1, 4, 6], "all of them, by shortcut");
    assert_eq!(found("说明"), [6]);
    assert!(found("nothing of it").is_empty());
}
