//! `POST /demo/token`: for this machine's own pages, while the demo is enabled.

use axum::body::Body;
use axum::http::StatusCode;
use kefu_core::Role;
use kefu_gateway::GatewayConfig;

use crate::support::{Answer, House, Somebody, config, request};

async fn mint(house: &House, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = request("POST", "/demo/token");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    house.call(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn a_minted_token_is_a_person_of_that_role() {
    let house = House::new();
    let mut subs = std::collections::BTreeSet::new();
    for role in ["user", "agent", "supervisor", "user"] {
        let answer = mint(&house, &[], &format!(r#"{{"role":"{role}","name":"Mei"}}"#)).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let body = answer.json();
        let sub = body["sub"].as_str().unwrap();
        assert!(sub.starts_with(&format!("demo-{role}-")), "{sub}");
        subs.insert(sub.to_owned());
        let caller = house.somebody(Role::User, "x").caller;
        let person = Somebody { caller, token: body["token"].as_str().unwrap().to_owned() };
        let page = house.get_as(&person, "/api/v1/sessions/42/messages").await;
        page.refused(404, "not_found");
    }
    assert_eq!(subs.len(), 4);
}

#[tokio::test]
async fn without_the_demo_there_is_no_such_call() {
    let house = House::with(GatewayConfig { demo: false, ..config() });
    mint(&house, &[], r#"{"role":"user"}"#).await.refused(404, "not_found");
}

#[tokio::test]
async fn other_sites_and_proxies_get_none() {
    let house = House::new();
    let body = r#"{"role":"agent"}"#;
    for header in [("origin", "http://evil.test"), ("x-forwarded-for", "192.0.2.1")] {
        mint(&house, &[header], body).await.refused(403, "forbidden");
    }
    let own = mint(&house, &[("origin", "http://localhost:8080")], body).await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let house = House::new();
    for body in ["", "{}", r#"{"role":"admin"}"#, r#"{"role":"user","name":"a\u0000b"}"#] {
        mint(&house, &[], body).await.refused(400, "bad_request");
    }
    let large = format!(r#"{{"role":"user","name":"{}"}}"#, "x".repeat(5_000));
    mint(&house, &[], &large).await.refused(413, "payload_too_large");
}
