//! The keys of an issuer: a JSON Web Key Set (RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

/// More keys are ignored. A token without a key id is checked with each of them.
const MAX_KEYS: usize = 64;

/// The keys that can verify signatures.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<Key>,
}

/// The document is no set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document is no set of keys (RFC 7517)")]
pub struct UnreadableKeys;

#[derive(Debug)]
pub(crate) struct Key {
    id: Option<String>,
    kind: Kind,
    /// The one algorithm for which the key may be used, if the issuer says so.
    only: Option<Algorithm>,
    decoding: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
}

/// Keys are parsed one by one: an issuer may also have keys that are not known here.
#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

// === impl KeySet ===

impl KeySet {
    /// Reads a document. Keys of other kinds, and keys for encryption, are ignored. So there may be no key: an issuer withdraws all of
    /// its keys when they are stolen.
    pub fn parse(document: serde_json::Value) -> Result<Self, UnreadableKeys> {
        let document: Document = serde_json::from_value(document).map_err(|_| UnreadableKeys)?;
        let keys: Vec<Key> = document.keys.into_iter().filter_map(Key::parse).take(MAX_KEYS).collect();
        Ok(Self { keys })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether there is a key with this id. Any key may belong to a token without a key id.
    pub(crate) fn has(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| self.keys.iter().any(|key| key.id.as_deref() == Some(id)))
    }

    /// The keys that may have signed a token with this algorithm and key id.
    pub(crate) fn candidates(&self, algorithm: Algorithm, id: Option<&str>) -> impl Iterator<Item = &DecodingKey> {
        let is_candidate = move |key: &&Key| id.is_none_or(|id| key.id.as_deref() == Some(id)) && key.fits(algorithm);
        self.keys.iter().filter(is_candidate).map(|key| &key.decoding)
    }
}

// === impl Key ===

impl Key {
    fn parse(value: serde_json::Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let kind = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Kind::Rsa,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Kind::P256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => Kind::P384,
            _ => return None,
        };
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let only = match &jwk.common.key_algorithm {
            None => None,
            Some(algorithm) => Some(accepted(*algorithm)?),
        };
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, kind, only, decoding })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        Kind::of(algorithm) == Some(self.kind) && self.only.is_none_or(|only| only == algorithm)
    }
}

// === impl Kind ===

impl Kind {
    /// The kind of keys for an algorithm. `None` if it is not accepted.
    fn of(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512 => Some(Self::Rsa),
            Algorithm::ES256 => Some(Self::P256),
            Algorithm::ES384 => Some(Self::P384),
            // Never HS256 and the like: a public key would be the secret. kube-apiserver does not accept EdDSA either
            // (`AllValidSigningAlgorithms`).
            _ => None,
        }
    }
}

/// Whether tokens with this algorithm are accepted.
pub(crate) fn accepts(algorithm: Algorithm) -> bool {
    Kind::of(algorithm).is_some()
}

/// `None` for an algorithm that is not accepted.
fn accepted(algorithm: KeyAlgorithm) -> Option<Algorithm> {
    Some(match algorithm {
        KeyAlgorithm::RS256 => Algorithm::RS256,
        KeyAlgorithm::RS384 => Algorithm::RS384,
        KeyAlgorithm::RS512 => Algorithm::RS512,
        KeyAlgorithm::PS256 => Algorithm::PS256,
        KeyAlgorithm::PS384 => Algorithm::PS384,
        KeyAlgorithm::PS512 => Algorithm::PS512,
        KeyAlgorithm::ES256 => Algorithm::ES256,
        KeyAlgorithm::ES384 => Algorithm::ES384,
        _ => return None,
    })
}
