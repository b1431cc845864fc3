//! `GET /uploads/chat/…`: links and what is said about an image (U1, B97).

use std::time::Duration;

use axum::http::StatusCode;

use crate::support::{Form, House, png};

async fn uploaded(house: &House) -> String {
    let (user, _) = house.visitor("u1").await;
    let answer = house.upload(&user, "", Form::default().file("a.png", &png(4, 3))).await;
    answer.json()["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_signed_link_shows_a_picture_and_nothing_else() {
    let house = House::new();
    let url = uploaded(&house).await;
    let answer = house.get(&url).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body, png(4, 3));
    assert_eq!(answer.header("content-type"), "image/png");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(answer.header("cache-control"), "private, max-age=900, immutable");
    assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin");
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let disposition = format!("attachment; filename=\"{name}\"");
    assert_eq!(answer.header("content-disposition"), disposition);
}

#[tokio::test]
async fn a_link_expires() {
    let house = House::new();
    let url = uploaded(&house).await;
    house.clock.advance(Duration::from_millis(899_999));
    assert_eq!(house.get(&url).await.header("cache-control"), "private, max-age=1, immutable");
    house.clock.advance(Duration::from_millis(1));
    house.get(&url).await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_changed_link_opens_nothing() {
    let house = House::new();
    let url = uploaded(&house).await;
    let (path, query) = url.split_once('?').unwrap();
    let (exp, sig) = query.split_once('&').unwrap();
    let changed = [
        path.to_owned(),
        format!("{path}?{exp}"),
        format!("{path}?{sig}"),
        format!("{path}?exp=9999999999&{sig}"),
        format!("{path}?exp=x&{sig}"),
        format!("{path}?{exp}&{sig}A"),
        format!("{}?{query}", path.replace(".png", ".gif")),
        format!("{}?{query}", path.replace("20260128", "20260127")),
        format!("{url}&exp=1"),
    ];
    for link in changed {
        house.get(&link).await.refused(403, "forbidden");
    }
    for path in ["/uploads/chat/20260128/a.svg", "/uploads/chat/x/y", "/uploads/chat/..%2f/x.png"] {
        house.get(&format!("{path}?{query}")).await.refused(404, "not_found");
    }
}
