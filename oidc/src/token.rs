//! A JSON Web Token (RFC 7519) in the compact serialization of JWS (RFC 7515 section 7.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};

use crate::claims::{Claims, claimed_issuer};
use crate::keys::{KeySet, accepts};
use crate::refused::Refused;

/// The maximum length of a token, in bytes. kube-apiserver limits only the size of all headers, 1 MiB.
const MAX_TOKEN: usize = 64 * 1024;

/// A token that claims to be one of a certain issuer. Nothing else about it is known.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    text: &'a str,
}

// === impl Token ===

impl<'a> Token<'a> {
    /// `None` if the text is no JWT that claims to be one of this issuer (`hasCorrectIssuer` in apiserver's
    /// `plugin/pkg/authenticator/token/oidc/oidc.go`). A text that is too long may be one, and is never accepted.
    pub fn of_issuer(text: &'a str, issuer: &str) -> Option<Self> {
        if text.len() > MAX_TOKEN {
            return Some(Self { text });
        }
        let mut parts = text.split('.');
        let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return None;
        };
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let claims: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
        (claimed_issuer(&claims)? == issuer).then_some(Self { text })
    }

    /// The algorithm, and the id of the key.
    pub(crate) fn header(&self) -> Result<Header, Refused> {
        if self.text.len() > MAX_TOKEN {
            return Err(Refused::Malformed);
        }
        let header = decode_header(self.text).map_err(|_| Refused::Malformed)?;
        if accepts(header.alg) { Ok(header) } else { Err(Refused::Malformed) }
    }

    /// The claims, if one of the keys has signed them.
    pub(crate) fn verify(&self, header: &Header, keys: &KeySet) -> Result<Claims, Refused> {
        for key in keys.candidates(header.alg, header.kid.as_deref()) {
            if let Ok(verified) = decode(self.text, key, &signature_only(header.alg)) {
                return Ok(Claims::new(verified.claims));
            }
        }
        Err(Refused::Signature)
    }
}

impl std::fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The claims are checked by [`Rules`](crate::Rules), at the same moment and with kube-apiserver's leeway.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
    validation
}

#[cfg(test)]
mod tests;
