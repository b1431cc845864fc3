//! Tokens, room and origins before a call is worked on.

use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use kefu_core::Role;
use kefu_gateway::GatewayConfig;

use crate::support::{Form, House, config, png, request};

const PATH: &str = "/api/v1/sessions/42/messages";

#[tokio::test]
async fn a_call_needs_a_good_token() {
    let house = House::new();
    let user = house.somebody(Role::User, "u1");
    let bearer = user.bearer();
    let damaged = &bearer[..bearer.len() - 1];
    for token in ["", "Bearer", "Bearer ", "Bearer x.y.z", "Basic dTE6", damaged] {
        let request = request("GET", PATH).header(header::AUTHORIZATION, token);
        let answer = house.call(request.body(Body::empty()).unwrap()).await;
        answer.refused(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    house.get(PATH).await.refused(401, "unauthenticated");
    house.get_as(&user, PATH).await.refused(404, "not_found");
    house.clock.advance(Duration::from_secs(3_600));
    house.get_as(&user, PATH).await.refused(401, "unauthenticated");
    house
        .upload(&user, "", Form::default().file("a", &png(1, 1)))
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_full_house_says_when_to_come_back() {
    let house = House::with(GatewayConfig { in_flight: 0, ..config() });
    let user = house.somebody(Role::User, "u1");
    let answer = house.get_as(&user, PATH).await;
    answer.refused(503, "overloaded");
    assert_eq!(answer.json()["error"]["retryAfterMs"], 1_000);
    assert_eq!(house.get("/healthz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn pages_of_other_sites_call_only_if_allowed() {
    let origins = vec!["https://shop.test".to_owned()];
    let house = House::with(GatewayConfig { allowed_origins: origins, ..config() });
    let call = |method: &'static str, origin: &'static str| {
        let request = request(method, "/api/v1/uploads")
            .header(header::ORIGIN, origin)
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST");
        house.call(request.body(Body::empty()).unwrap())
    };
    let preflight = call("OPTIONS", "https://shop.test").await;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    assert_eq!(preflight.header("access-control-allow-origin"), "https://shop.test");
    assert_eq!(preflight.header("access-control-allow-headers"), "authorization, content-type");
    assert_eq!(preflight.header("access-control-allow-methods"), "GET, POST");

    let refused_but_readable = call("POST", "https://shop.test").await;
    refused_but_readable.refused(401, "unauthenticated");
    assert_eq!(refused_but_readable.header("access-control-allow-origin"), "https://shop.test");
    assert_eq!(refused_but_readable.header("vary"), "origin");

    for method in ["OPTIONS", "POST"] {
        let refused = call(method, "https://evil.test").await;
        refused.refused(403, "forbidden");
        assert_eq!(refused.header("access-control-allow-origin"), "");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_same_shape() {
    let house = House::new();
    for path in ["/api", "/api/", "/api/v1", "/api/v2/uploads", "/nothing", "/uploads/chat/x"] {
        house.get(path).await.refused(404, "not_found");
    }
    for (method, path) in [("GET", "/api/v1/uploads"), ("DELETE", "/healthz"), ("POST", "/")] {
        let request = request(method, path).body(Body::empty()).unwrap();
        house.call(request).await.refused(405, "bad_request");
    }
}
