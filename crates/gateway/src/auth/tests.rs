//! What a token must be to prove anything (B92).

use std::collections::BTreeMap;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use kefu_core::{AdminId, AgentInfo, Balance, ManualClock, Role, UserId, UserInfo};
use serde_json::{Value, json};

use super::*;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
/// 2026-01-28 00:00:00 UTC in seconds: where a manual clock stands.
const NOW: i64 = 1_769_558_400;
const JWKS: &str = include_str!("testdata/jwks.json");

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::default())
}

fn hs256() -> Authenticator {
    Authenticator::hs256(SECRET, clock()).unwrap()
}

fn signed_with(algorithm: Algorithm, secret: &[u8], claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret).unwrap();
    jsonwebtoken::encode(&Header::new(algorithm), claims, &key).unwrap()
}

fn verify(claims: &Value) -> Result<Verified, AuthError> {
    hs256().verify(&signed_with(Algorithm::HS256, SECRET, claims))
}

fn user() -> Value {
    json!({ "sub": "u1", "role": "user", "exp": NOW + 60 })
}

fn with(claim: &str, value: Value) -> Value {
    let mut claims = user();
    claims[claim] = value;
    claims
}

fn user_of(claims: &Value) -> UserInfo {
    match verify(claims).unwrap().caller {
        Caller::User(info) => info,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_claims_become_the_caller() {
    let mut claims = user();
    claims["name"] = json!("Mei 梅");
    claims["avatar"] = json!("https://a.test/m.png");
    claims["balance"] = json!(12_345);
    claims["vip"] = json!(true);
    let verified = verify(&claims).unwrap();
    assert_eq!(verified.expires_at, Timestamp((NOW + 60) * 1000));
    assert_eq!(
        verified.caller,
        Caller::User(UserInfo {
            user_id: UserId::new("u1").unwrap(),
            name: "Mei 梅".into(),
            avatar: Some("https://a.test/m.png".into()),
            balance: Some(Balance(12_345)),
            vip: Some(true),
        })
    );
    let agent =
        AgentInfo { admin_id: AdminId::new("a1").unwrap(), name: "a1".into(), avatar: None };
    let of_role = |role| verify(&json!({ "sub": "a1", "role": role, "exp": NOW + 1 }));
    assert_eq!(of_role("agent").unwrap().caller, Caller::Agent(agent.clone()));
    assert_eq!(of_role("supervisor").unwrap().caller, Caller::Supervisor(agent));
}

#[test]
fn bad_optional_claims_are_left_out() {
    for name in [json!(""), json!(" \t"), json!("a\u{0}b"), json!("x".repeat(129)), json!(7)] {
        assert_eq!(user_of(&with("name", name.clone())).name, "u1", "{name}");
    }
    let long = format!("https://a.test/{}", "x".repeat(512));
    for avatar in [json!("javascript:alert(1)"), json!("data:x"), json!(long), json!([])] {
        assert_eq!(user_of(&with("avatar", avatar.clone())).avatar, None, "{avatar}");
    }
    for balance in [json!("100"), json!(1.5), json!(null), json!({})] {
        assert_eq!(user_of(&with("balance", balance.clone())).balance, None, "{balance}");
    }
    assert_eq!(user_of(&with("vip", json!("yes"))).vip, None);
}

#[test]
fn balances_stay_inside_what_a_score_keeps() {
    let balance = |value| user_of(&with("balance", value)).balance;
    assert_eq!(balance(json!(Balance::MAX)), Some(Balance(Balance::MAX)));
    assert_eq!(balance(json!(u64::MAX)), Some(Balance(Balance::MAX)));
    assert_eq!(balance(json!(i64::MIN)), Some(Balance(-Balance::MAX)));
}

#[test]
fn a_token_ends_at_its_expiry() {
    assert_eq!(verify(&with("exp", json!(NOW))), Err(AuthError::Expired));
    assert_eq!(verify(&with("exp", json!(NOW - 1))), Err(AuthError::Expired));
    assert_eq!(verify(&with("exp", json!(-1))), Err(AuthError::Expired));
    assert!(verify(&with("exp", json!(NOW as f64 + 0.5))).is_ok());
    assert!(verify(&with("exp", json!(i64::MAX))).is_ok());

    let clock = clock();
    let auth = Authenticator::hs256(SECRET, clock.clone()).unwrap();
    let token = signed_with(Algorithm::HS256, SECRET, &user());
    clock.advance(Duration::from_millis(59_999));
    assert!(auth.verify(&token).is_ok());
    clock.advance(Duration::from_millis(1));
    assert_eq!(auth.verify(&token), Err(AuthError::Expired));
}

#[test]
fn a_token_is_not_good_before_its_time() {
    assert!(verify(&with("nbf", json!(NOW + 5))).is_ok());
    assert_eq!(verify(&with("nbf", json!(NOW + 6))), Err(AuthError::Invalid));
    assert_eq!(verify(&with("nbf", json!("soon"))), Err(AuthError::Invalid));
}

#[test]
fn required_claims_are_required() {
    for claim in ["sub", "role", "exp"] {
        let mut claims = user();
        claims.as_object_mut().unwrap().remove(claim);
        assert_eq!(verify(&claims), Err(AuthError::Invalid), "{claim}");
        assert_eq!(verify(&with(claim, json!(null))), Err(AuthError::Invalid), "{claim}");
    }
    for role in [json!("admin"), json!("User"), json!(""), json!(["user"])] {
        assert_eq!(verify(&with("role", role.clone())), Err(AuthError::Invalid), "{role}");
    }
    let too_long = "x".repeat(65);
    for sub in ["", "a b", "a:b", "客服", "u1\0", &too_long] {
        assert_eq!(verify(&with("sub", json!(sub))), Err(AuthError::Invalid), "{sub:?}");
    }
    assert_eq!(verify(&with("sub", json!(7))), Err(AuthError::Invalid));
    assert!(verify(&with("sub", json!("x".repeat(64)))).is_ok());
}

#[test]
fn no_token_is_missing() {
    assert_eq!(hs256().verify(""), Err(AuthError::Missing));
}

#[test]
fn a_damaged_token_is_refused() {
    let token = signed_with(Algorithm::HS256, SECRET, &user());
    assert!(hs256().verify(&token).is_ok());
    for end in 1..token.len() {
        assert_eq!(hs256().verify(&token[..end]), Err(AuthError::Invalid), "cut at {end}");
    }
    let body = token.rsplit_once('.').unwrap().0;
    for bad in [format!("{body}."), format!(" {token}"), format!("{token}.x"), "...".into()] {
        assert_eq!(hs256().verify(&bad), Err(AuthError::Invalid), "{bad}");
    }
}

#[test]
fn only_the_secret_and_its_algorithm_are_believed() {
    let wrong_key = signed_with(Algorithm::HS256, b"another secret of some length", &user());
    assert_eq!(hs256().verify(&wrong_key), Err(AuthError::Invalid));
    let wrong_algorithm = signed_with(Algorithm::HS512, SECRET, &user());
    assert_eq!(hs256().verify(&wrong_algorithm), Err(AuthError::Invalid));
    // {"alg":"none"} and {"alg":"None"} in front of the claims of a good token.
    let token = signed_with(Algorithm::HS256, SECRET, &user());
    let claims = token.split('.').nth(1).unwrap();
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0"] {
        assert_eq!(hs256().verify(&format!("{header}.{claims}.")), Err(AuthError::Invalid));
        let signed = format!("{header}.{claims}.{}", token.rsplit('.').next().unwrap());
        assert_eq!(hs256().verify(&signed), Err(AuthError::Invalid));
    }
    // An expired token of another issuer is not "expired": nothing it says is believed.
    let claims = with("exp", json!(NOW - 1));
    let expired = signed_with(Algorithm::HS256, b"another secret of some length", &claims);
    assert_eq!(hs256().verify(&expired), Err(AuthError::Invalid));
}

#[test]
fn audience_and_issuer_are_the_hosts_own_business() {
    assert!(verify(&with("aud", json!(["shop"]))).is_ok());
    assert!(verify(&with("iss", json!("https://id.test"))).is_ok());
}

#[test]
fn every_refusal_is_unauthenticated() {
    for error in [AuthError::Missing, AuthError::Invalid, AuthError::Expired] {
        assert_eq!(error.code(), ErrorCode::Unauthenticated);
    }
}

#[test]
fn minted_tokens_verify() {
    let claims = Claims {
        sub: "a1".into(),
        role: Role::Agent,
        name: Some("An".into()),
        balance: None,
        expires_at: Timestamp(NOW * 1000 + 60_999),
    };
    let verified = hs256().verify(&hs256().mint(&claims).unwrap()).unwrap();
    let agent =
        AgentInfo { admin_id: AdminId::new("a1").unwrap(), name: "An".into(), avatar: None };
    assert_eq!(verified.caller, Caller::Agent(agent));
    assert_eq!(verified.expires_at, Timestamp((NOW + 60) * 1000));
    let bad = Claims { sub: "a b".into(), ..claims.clone() };
    assert_eq!(hs256().mint(&bad), Err(MintError::InvalidSubject));
    let verifier = Authenticator::jwks(JWKS, clock()).unwrap();
    assert_eq!(verifier.mint(&claims), Err(MintError::NoSecret));
}

#[test]
fn short_secrets_are_refused() {
    let short = Authenticator::hs256(b"fifteen bytes!!", clock());
    assert_eq!(short.unwrap_err(), KeyError::WeakSecret);
}

/// Signed by another implementation; see the header of each for what it claims to be.
fn foreign_tokens() -> BTreeMap<String, String> {
    serde_json::from_str(include_str!("testdata/tokens.json")).unwrap()
}

#[test]
fn a_key_set_verifies_its_three_algorithms_and_nothing_else() {
    let auth = Authenticator::jwks(JWKS, clock()).unwrap();
    let good = ["rs256", "es256", "eddsa"];
    for (name, token) in foreign_tokens() {
        let verified = auth.verify(&token).map(|verified| verified.caller.person().to_string());
        let expected = if good.contains(&name.as_str()) {
            Ok("user:u1".into())
        } else {
            Err(AuthError::Invalid)
        };
        assert_eq!(verified, expected, "{name}");
    }
}

#[test]
fn public_keys_are_never_taken_for_secrets() {
    let auth = Authenticator::jwks(JWKS, clock()).unwrap();
    let set: Value = serde_json::from_str(JWKS).unwrap();
    for key in set["keys"].as_array().unwrap() {
        let kid = key["kid"].as_str().unwrap();
        for part in ["n", "x", "k"] {
            let Some(text) = key[part].as_str() else { continue };
            let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::HS256) };
            let secrets = [text.as_bytes().to_vec(), SECRET.to_vec()];
            for secret in secrets {
                let key = EncodingKey::from_secret(&secret).unwrap();
                let token = jsonwebtoken::encode(&header, &user(), &key).unwrap();
                assert_eq!(auth.verify(&token), Err(AuthError::Invalid), "{kid}");
            }
        }
    }
}

/// The keys of the set that `keep` says, as a set of their own.
fn subset(keep: impl Fn(&str) -> bool) -> String {
    let mut set: Value = serde_json::from_str(JWKS).unwrap();
    let keys = set["keys"].as_array_mut().unwrap();
    keys.retain(|key| keep(key["kid"].as_str().unwrap()));
    set.to_string()
}

#[test]
fn the_only_key_needs_no_name() {
    let tokens = foreign_tokens();
    let auth = Authenticator::jwks(&subset(|kid| kid == "rsa-1"), clock()).unwrap();
    assert!(auth.verify(&tokens["rs256_without_kid"]).is_ok());
    assert_eq!(auth.verify(&tokens["rs256_unknown_kid"]), Err(AuthError::Invalid));
    let nameless = subset(|kid| kid == "rsa-1").replace("\"kid\":\"rsa-1\",", "");
    let auth = Authenticator::jwks(&nameless, clock()).unwrap();
    assert!(auth.verify(&tokens["rs256"]).is_ok());
}

#[test]
fn unclear_key_sets_are_refused_when_they_are_read() {
    let refused = |json: &str| Authenticator::jwks(json, clock()).unwrap_err();
    assert!(matches!(refused("[]"), KeyError::Unreadable(_)));
    assert_eq!(refused(r#"{"keys":[]}"#), KeyError::NoUsableKey);
    for kid in ["weak", "for-encryption", "other-algorithm", "shared"] {
        assert_eq!(refused(&subset(|key| key == kid)), KeyError::NoUsableKey, "{kid}");
    }
    assert_eq!(refused(&JWKS.replace("ec-1", "rsa-1")), KeyError::AmbiguousKey);
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?}", hs256()), "Authenticator { .. }");
}
