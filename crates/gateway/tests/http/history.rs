//! `GET /api/v1/sessions/{id}/messages`: pages, and who may read them (A3).

use axum::http::StatusCode;
use kefu_assignment::Origin;
use kefu_core::Role;
use kefu_messaging::Draft;
use kefu_upload::UploadPath;
use serde_json::Value;

use crate::support::{Answer, Form, House, png, trace};

fn seqs(answer: &Answer) -> Vec<i64> {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let page = answer.json();
    let messages = page["messages"].as_array().unwrap().iter();
    messages.map(|message| message["seq"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn pages_go_in_both_directions() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    for text in ["one", "two", "three", "four"] {
        house.say(&user, session, text).await;
    }
    let path = format!("/api/v1/sessions/{session}/messages");
    let page = |query: &str| {
        let path = format!("{path}{query}");
        let (house, user) = (&house, &user);
        async move { house.get_as(user, &path).await }
    };
    assert_eq!(seqs(&page("").await), [1, 2, 3, 4]);
    let after = page("?after_seq=1&limit=2").await;
    assert_eq!((seqs(&after), &after.json()["hasMore"]), (vec![2, 3], &Value::Bool(true)));
    assert_eq!(seqs(&page("?before_seq=3").await), [1, 2]);
    assert_eq!(seqs(&page("?after_seq=4").await), Vec::<i64>::new());
    assert_eq!(after.json()["sessionId"], session.to_string());
    assert_eq!(after.json()["messages"][0]["content"], "two");
    for bad in
        ["?limit=0", "?limit=51", "?after_seq=-1", "?after_seq=x", "?after_seq=1&before_seq=2"]
    {
        page(bad).await.refused(400, "bad_request");
    }
    house.get_as(&user, "/api/v1/sessions/x/messages").await.refused(400, "bad_request");
}

#[tokio::test]
async fn only_those_who_take_part_and_supervisors_read() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    house.say(&user, session, "hello").await;
    let path = format!("/api/v1/sessions/{session}/messages");
    let unclaimed = house.somebody(Role::Agent, "a1");
    house.get_as(&unclaimed, &path).await.refused(404, "not_found");
    let agent = house.agent_of("a1", session).await;
    let supervisor = house.somebody(Role::Supervisor, "s1");
    for reader in [&user, &agent, &supervisor] {
        assert_eq!(seqs(&house.get_as(reader, &path).await), [1]);
    }
    let (stranger, _) = house.visitor("u2").await;
    let colleague = house.somebody(Role::Agent, "a2");
    for reader in [&stranger, &colleague] {
        let foreign = house.get_as(reader, &path).await;
        let missing = house.get_as(reader, "/api/v1/sessions/42/messages").await;
        foreign.refused(404, "not_found");
        missing.refused(404, "not_found");
        assert_eq!(foreign.json()["error"]["message"], missing.json()["error"]["message"]);
    }
    house.desk.end(&agent.caller, session, Origin::default(), &trace()).await.unwrap();
    for reader in [&user, &agent, &supervisor] {
        assert_eq!(seqs(&house.get_as(reader, &path).await), [1]);
    }
}

#[tokio::test]
async fn images_are_signed_for_the_reader() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    let answer = house.upload(&user, "", Form::default().file("a.png", &png(4, 3))).await;
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    house.send(&user, session, Draft::Image(UploadPath::parse_url(&url).unwrap())).await;
    let page = house.get_as(&user, &format!("/api/v1/sessions/{session}/messages")).await;
    let content = page.json()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert_eq!(house.get(&content).await.status, StatusCode::OK);
}
