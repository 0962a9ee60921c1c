//! Secret text.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

/// A token, password or key. `Debug` and `Display` print `[redacted]`, and it cannot be serialized, so no log line,
/// status page or error can leak it by accident. Clones share the text.
///
/// It deliberately has no `==`: a comparison with what a peer sent must take constant time.
#[derive(Clone)]
pub struct Secret(Arc<str>);

const SHOWN: &str = "[redacted]";

/// The characters of [`random_text`].
const CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Random lower-case letters and digits, five bits each, from the cryptography provider. `None` if the system has no randomness.
pub fn random_text(length: usize) -> Option<String> {
    let mut bytes = vec![0; length];
    rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| char::from(CHARACTERS[usize::from(byte % 32)])).collect())
}

/// SHA-256, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

// === impl Secret ===

impl Secret {
    /// The text itself. Review each use of this carefully.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_does_not_show_the_text() {
        let secret = Secret::from("hunter2");
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "[redacted] [redacted] [redacted]");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn it_is_read_like_a_string() {
        let secret: Secret = serde_json::from_str("\"hunter2\"").unwrap();
        assert_eq!(secret.expose(), "hunter2");
    }
}
