//! Bodies that the agent does not send again, because the proxy-server has kept them.
//!
//! ```text
//! GET /apis                              :status: 200
//! x-atoll-have: 9f86d0...                x-atoll-encoding: held
//! ```
//!
//! Clients such as Karmada read the same discovery documents every few seconds. The proxy-server keeps the last
//! response, and names its digest in the next request. The agent handles this request like any other one: it authorises
//! the client and makes the response. If the body is unchanged, the agent sends only the head. So nobody gets a body
//! without the right to read it, and nobody gets a stale one.
//!
//! This is not `If-None-Match` (RFC 9110, section 13.1.2): a client may send its own, and not all of these responses
//! have an ETag.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

/// The digest of the body that the proxy-server has. Only the proxy-server sets it, never a client.
pub const HAVE: HeaderName = HeaderName::from_static("x-atoll-have");

/// The maximum length of a body that the proxy-server keeps, so the agent does not compare longer ones.
pub const MAX_HELD: usize = 8 * 1024 * 1024;

/// The SHA-256 digest of a body (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// Computes the digest of a body that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

// === impl Digest ===

impl Digest {
    /// The digest of a whole body.
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }

    /// Adds the digest to the head of a request.
    pub fn write(&self, request: &mut HeaderMap) {
        let value = HeaderValue::try_from(self.to_string()).expect("hexadecimal digits are a header value");
        request.insert(HAVE, value);
    }

    /// Removes the digest from the head of a request, and returns it.
    pub fn take(request: &mut HeaderMap) -> Option<Self> {
        Self::parse(request.remove(HAVE)?.to_str().ok()?)
    }

    /// Reads what `Display` has written.
    pub fn parse(digits: &str) -> Option<Self> {
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() || !digits.is_ascii() {
            return None;
        }
        for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
        }
        Some(Self(digest))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl Hasher ===

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_body_survives() {
        let mut hasher = Hasher::default();
        for piece in ["te", "st"] {
            hasher.update(piece.as_bytes());
        }
        let digest = hasher.finish();
        // From sha256sum.
        assert_eq!(digest.to_string(), "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
        let mut head = HeaderMap::new();
        digest.write(&mut head);
        assert_eq!((Digest::take(&mut head), head.len()), (Some(Digest::of(b"test")), 0));
    }

    #[test]
    fn other_values_name_nothing() {
        for value in ["", "9f", "zz86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "ä"] {
            let mut head = HeaderMap::new();
            head.insert(HAVE, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            assert_eq!(Digest::take(&mut head), None, "{value}");
        }
    }
}
