//! Pages, modules and probes.

use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{StatusCode, header};

use crate::support::{House, request};

#[tokio::test]
async fn pages_allow_nothing_but_their_own() {
    let house = House::new();
    for path in ["/", "/console"] {
        let page = house.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(page.header("access-control-allow-origin"), "");
    }
}

#[tokio::test]
async fn modules_can_be_loaded_by_other_sites() {
    let house = House::new();
    for path in ["/widget.js", "/client.js", "/console.js"] {
        let module = house.get(path).await;
        assert_eq!(module.status, StatusCode::OK, "{path}");
        assert_eq!(module.header("content-type"), "text/javascript; charset=utf-8");
        assert_eq!(module.header("access-control-allow-origin"), "*");
        assert_eq!(module.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn whoever_takes_gzip_gets_less_of_the_same_under_another_tag() {
    let house = House::new();
    let plain = house.get("/widget.js").await;
    let ask = request("GET", "/widget.js").header(header::ACCEPT_ENCODING, "gzip, br");
    let packed = house.call(ask.body(Body::empty()).unwrap()).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!(plain.header("content-encoding"), "");
    assert!(packed.body.len() < plain.body.len() / 2, "{}", packed.body.len());
    assert_ne!(packed.header("etag"), plain.header("etag"));
    for answer in [&plain, &packed] {
        assert_eq!(answer.header("vary"), "accept-encoding");
    }
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again() {
    let house = House::new();
    let etag = house.get("/client.js").await.header("etag").to_owned();
    let known = request("GET", "/client.js").header(header::IF_NONE_MATCH, &etag);
    let answer = house.call(known.body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(answer.header("etag"), etag);
    let other = request("GET", "/client.js").header(header::IF_NONE_MATCH, "\"x\"");
    assert_eq!(house.call(other.body(Body::empty()).unwrap()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn probes_tell_alive_from_ready() {
    let house = House::new();
    assert_eq!(house.get("/readyz").await.json(), serde_json::json!({ "ready": true }));
    house.ready.0.store(false, Ordering::Relaxed);
    let red = house.get("/readyz").await;
    assert_eq!(red.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(red.json(), serde_json::json!({ "ready": false, "missing": "store" }));
    house.ready.0.store(true, Ordering::Relaxed);
    house.closing.cancel();
    assert_eq!(house.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    let alive = house.get("/healthz").await;
    assert_eq!((alive.status, &alive.body[..]), (StatusCode::OK, &b"ok"[..]));
}

#[tokio::test]
async fn metrics_are_text() {
    let answer = House::new().get("/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert_eq!(&answer.body[..], b"kefu_up 1\n");
}
