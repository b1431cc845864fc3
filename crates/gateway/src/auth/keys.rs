//! The keys that tokens are verified with, each pinned to one algorithm.

use std::collections::HashMap;

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey, Validation};
use serde::de::DeserializeOwned;

/// As for image links, which the same secret signs.
const MIN_SECRET_BYTES: usize = 16;
/// 2,048 bits, the least that RFC 7518 allows.
const MIN_RSA_BYTES: usize = 256;

/// Why tokens cannot be verified with what was configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The secret is too short.
    #[error("the secret that signs tokens needs at least {MIN_SECRET_BYTES} bytes")]
    WeakSecret,
    /// Not a JWKS document.
    #[error("not a key set: {0}")]
    Unreadable(String),
    /// None of its keys can verify RS256, ES256 or EdDSA.
    #[error("the key set has no usable RS256, ES256 or EdDSA key")]
    NoUsableKey,
    /// A token could not tell which key is meant.
    #[error("every key needs a kid of its own when the set has several")]
    AmbiguousKey,
}

/// Where trust comes from.
pub(super) enum Keys {
    Secret { verifying: Verifier, signing: EncodingKey },
    Only { kid: Option<String>, verifying: Verifier },
    Many(HashMap<String, Verifier>),
}

/// A key with the one algorithm that it verifies.
pub(super) struct Verifier {
    key: DecodingKey,
    rules: Validation,
}

impl Keys {
    pub(super) fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(KeyError::WeakSecret);
        }
        let key = DecodingKey::from_secret(secret).map_err(|_| KeyError::WeakSecret)?;
        let signing = EncodingKey::from_secret(secret).map_err(|_| KeyError::WeakSecret)?;
        Ok(Self::Secret { verifying: Verifier::new(key, Algorithm::HS256), signing })
    }

    pub(super) fn from_jwks(json: &str) -> Result<Self, KeyError> {
        let set: JwkSet =
            serde_json::from_str(json).map_err(|error| KeyError::Unreadable(error.to_string()))?;
        let mut keys: Vec<_> = set.keys.iter().filter_map(usable).collect();
        let passed_over = set.keys.len() - keys.len();
        if passed_over > 0 {
            tracing::warn!(passed_over, "keys of the key set that cannot verify tokens");
        }
        if keys.len() > 1 {
            return many(keys);
        }
        let (kid, verifying) = keys.pop().ok_or(KeyError::NoUsableKey)?;
        Ok(Self::Only { kid, verifying })
    }

    /// The claims of `token` if its signature holds. Times are not looked at: the library would ask
    /// the machine's clock.
    pub(super) fn open<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        self.verifier_of(token)?.open(token)
    }

    pub(super) const fn signing(&self) -> Option<&EncodingKey> {
        match self {
            Self::Secret { signing, .. } => Some(signing),
            Self::Only { .. } | Self::Many(_) => None,
        }
    }

    fn verifier_of(&self, token: &str) -> Option<&Verifier> {
        match self {
            Self::Secret { verifying, .. } => Some(verifying),
            Self::Only { kid, verifying } => {
                let named = kid_of(token)?;
                let other = named.is_some() && kid.is_some() && named != *kid;
                (!other).then_some(verifying)
            }
            Self::Many(keys) => keys.get(&kid_of(token)??),
        }
    }
}

impl Verifier {
    fn new(key: DecodingKey, algorithm: Algorithm) -> Self {
        let mut rules = Validation::new(algorithm);
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        rules.validate_aud = false;
        Self { key, rules }
    }

    fn open<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        jsonwebtoken::decode(token, &self.key, &self.rules).ok().map(|token| token.claims)
    }
}

/// The outer `None` is a header that cannot be read.
fn kid_of(token: &str) -> Option<Option<String>> {
    jsonwebtoken::decode_header(token).ok().map(|header| header.kid)
}

fn many(keys: Vec<(Option<String>, Verifier)>) -> Result<Keys, KeyError> {
    let mut by_kid = HashMap::with_capacity(keys.len());
    for (kid, verifier) in keys {
        let kid = kid.ok_or(KeyError::AmbiguousKey)?;
        if by_kid.insert(kid, verifier).is_some() {
            return Err(KeyError::AmbiguousKey);
        }
    }
    Ok(Keys::Many(by_kid))
}

fn usable(jwk: &Jwk) -> Option<(Option<String>, Verifier)> {
    let purpose = jwk.common.public_key_use.as_ref();
    if purpose.is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let algorithm = algorithm_of(jwk)?;
    let key = DecodingKey::from_jwk(jwk).ok()?;
    if is_weak(&key) {
        return None;
    }
    Some((jwk.common.key_id.clone(), Verifier::new(key, algorithm)))
}

/// The algorithm that a key is for, which never depends on a token. Shared secrets are not for files
/// of public keys.
fn algorithm_of(jwk: &Jwk) -> Option<Algorithm> {
    let (algorithm, name) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        _ => return None,
    };
    let declared = jwk.common.key_algorithm.unwrap_or(name);
    (declared == name).then_some(algorithm)
}

fn is_weak(key: &DecodingKey) -> bool {
    matches!(key.kind(), DecodingKeyKind::RsaModulusExponent { n, .. } if n.len() < MIN_RSA_BYTES)
}
