//! `POST /api/v1/uploads`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::{StreamExt as _, stream};
use kefu_assignment::Origin;
use kefu_core::Role;
use kefu_gateway::GatewayConfig;
use tower::ServiceExt as _;

use crate::support::{
    Form, House, MAX_FILE, config, fields, png, png_of_len, trace, upload_request,
};

#[tokio::test]
async fn a_visitor_uploads_into_the_open_session() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let answer = house.upload(&user, "", Form::default().file("a.png", &png(4, 3))).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let body = answer.json();
    let names = BTreeSet::from(["url", "mimeType", "size", "width", "height"]);
    assert_eq!(fields(&body), names);
    assert_eq!(
        (&body["mimeType"], &body["width"], &body["height"]),
        (&"image/png".into(), &4.into(), &3.into())
    );
    assert_eq!(body["size"], png(4, 3).len());
    assert!(body["url"].as_str().unwrap().starts_with("/uploads/chat/20260128/"));
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test]
async fn the_limit_counts_bytes_of_the_file() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    let named = Form::default().field("sessionId", &session.to_string());
    let fits = house.upload(&user, "", named.file("a.png", &png_of_len(MAX_FILE))).await;
    assert_eq!(fits.status, StatusCode::CREATED, "{fits:?}");
    let too_large = Form::default().file("a.png", &png_of_len(MAX_FILE + 1));
    house.upload(&user, "", too_large).await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn an_endless_file_is_refused_on_the_stream() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let head = Form::default().file("a.png", &png(4, 3)).unfinished();
    let endless = stream::repeat_with(move || {
        counter.fetch_add(65_536, Ordering::Relaxed);
        Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 65_536]))
    });
    let body = Body::from_stream(stream::once(async { Ok(head) }).chain(endless));
    house.call(upload_request(&user, "", body)).await.refused(413, "payload_too_large");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent <= MAX_FILE + 2 * 65_536, "{sent} bytes were read");
}

#[tokio::test]
async fn what_surrounds_a_file_is_bounded_too() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let form = Form::default().field("comment", &"x".repeat(MAX_FILE + 70_000));
    let answer = house.upload(&user, "", form.file("a.png", &png(4, 3))).await;
    answer.refused(413, "payload_too_large");
}

#[tokio::test]
async fn only_the_bytes_say_what_a_file_is() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let html = b"<html><script>alert(1)</script></html>";
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    for file in [&html[..], &svg[..], b"", &png(4, 3)[..40]] {
        let answer = house.upload(&user, "", Form::default().file("a.png", file)).await;
        answer.refused(415, "unsupported_media_type");
    }
    let named_otherwise = Form::default().file("\\\"><img onerror>.html", &png(4, 3));
    let answer = house.upload(&user, "", named_otherwise).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert!(answer.json()["url"].as_str().unwrap().contains(".png?exp="));
}

#[tokio::test]
async fn a_session_of_somebody_else_does_not_exist() {
    let house = House::new();
    let (_, foreign) = house.visitor("u1").await;
    let (user, _) = house.visitor("u2").await;
    let named = Form::default().field("sessionId", &foreign.to_string());
    let in_form = house.upload(&user, "", named.file("a.png", &png(4, 3))).await;
    in_form.refused(404, "not_found");
    let query = format!("?sessionId={foreign}");
    let in_query = house.upload(&user, &query, Form::default().file("a.png", &png(4, 3))).await;
    in_query.refused(404, "not_found");
    let nowhere = house.upload(&user, "?sessionId=42", Form::default().file("a", b"")).await;
    nowhere.refused(404, "not_found");
    assert_eq!(in_form.json()["error"]["message"], nowhere.json()["error"]["message"]);
}

#[tokio::test]
async fn who_may_not_upload_is_not_listened_to() {
    let house = House::new();
    let nobody = house.somebody(Role::User, "u9");
    let head = Form::default().file("a.png", &png(4, 3)).unfinished();
    // The rest never comes: only an answer before the file is read can end this call.
    let body = Body::from_stream(
        stream::once(async { Ok::<_, std::io::Error>(head) }).chain(stream::pending()),
    );
    house.call(upload_request(&nobody, "", body)).await.refused(404, "not_found");
}

#[tokio::test]
async fn agents_name_the_session_and_supervisors_only_watch() {
    let house = House::new();
    let (_, session) = house.visitor("u1").await;
    let agent = house.agent_of("a1", session).await;
    let file = || Form::default().file("a.png", &png(4, 3));
    house.upload(&agent, "", file()).await.refused(400, "bad_request");
    let query = format!("?sessionId={session}");
    assert_eq!(house.upload(&agent, &query, file()).await.status, StatusCode::CREATED);
    let other = house.somebody(Role::Agent, "a2");
    house.upload(&other, &query, file()).await.refused(404, "not_found");
    let supervisor = house.somebody(Role::Supervisor, "s1");
    house.upload(&supervisor, &query, file()).await.refused(403, "forbidden");
}

#[tokio::test]
async fn an_ended_session_takes_no_image() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    house.desk.end(&user.caller, session, Origin::default(), &trace()).await.unwrap();
    let file = || Form::default().file("a.png", &png(4, 3));
    let query = format!("?sessionId={session}");
    house.upload(&user, &query, file()).await.refused(409, "session_closed");
    house.upload(&user, "", file()).await.refused(404, "not_found");
}

#[tokio::test]
async fn malformed_forms_are_refused() {
    let house = House::new();
    let (user, session) = house.visitor("u1").await;
    let id = session.to_string();
    let file = || Form::default().file("a.png", &png(4, 3));
    let forms = [
        Form::default(),
        Form::default().field("sessionId", &id),
        file().file("b.png", &png(4, 3)),
        file().field("sessionId", &id),
        Form::default().field("sessionId", "x").file("a.png", &png(4, 3)),
        Form::default().field("sessionId", &"1".repeat(70)).file("a.png", &png(4, 3)),
    ];
    for form in forms {
        house.upload(&user, "", form).await.refused(400, "bad_request");
    }
    let both = Form::default().field("sessionId", &id).file("a.png", &png(4, 3));
    house.upload(&user, "?sessionId=42", both).await.refused(400, "bad_request");
    let cut_off = upload_request(&user, "", Body::from(file().unfinished()));
    house.call(cut_off).await.refused(400, "bad_request");
    let mut no_form = upload_request(&user, "", Body::from("{}"));
    no_form.headers_mut().insert("content-type", "application/json".parse().unwrap());
    house.call(no_form).await.refused(400, "bad_request");
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let form = Form::default().field("comment", "hi").file("a.png", &png(4, 3)).field("x", "y");
    assert_eq!(house.upload(&user, "", form).await.status, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_let_go() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let head = Form::default().file("a.png", &png(4, 3)).unfinished();
    let body = Body::from_stream(
        stream::once(async { Ok::<_, std::io::Error>(head) }).chain(stream::pending()),
    );
    let begin = tokio::time::Instant::now();
    house.call(upload_request(&user, "", body)).await.refused(408, "bad_request");
    assert_eq!(begin.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn uploads_are_limited_per_person() {
    let house = House::with(GatewayConfig { uploads_per_minute: 2, ..config() });
    let (user, _) = house.visitor("u1").await;
    let (other, _) = house.visitor("u2").await;
    let file = || Form::default().file("a.png", &png(4, 3));
    for _ in 0..2 {
        assert_eq!(house.upload(&user, "", file()).await.status, StatusCode::CREATED);
    }
    let refused = house.upload(&user, "", file()).await;
    refused.refused(429, "rate_limited");
    let retry_after = refused.json()["error"]["retryAfterMs"].as_u64().unwrap();
    assert!((1..=30_000).contains(&retry_after), "{retry_after}");
    assert_eq!(refused.header("retry-after"), retry_after.div_ceil(1_000).to_string());
    assert_eq!(house.upload(&other, "", file()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_cancel_the_write() {
    let house = House::new();
    let (user, _) = house.visitor("u1").await;
    let all = house.shelf.open.acquire_many(100).await.unwrap();
    let request = Form::default().file("a.png", &png(4, 3)).request(&user, "");
    let call = house.router.clone().oneshot(request);
    tokio::select! {
        _ = call => panic!("the shelf is shut"),
        arrived = house.shelf.arrived.acquire() => arrived.unwrap().forget(),
    }
    drop(all);
    house.tracker.close();
    house.tracker.wait().await;
    assert_eq!(house.shelf.len(), 1);
}
