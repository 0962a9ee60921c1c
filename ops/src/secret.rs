//! Secret text.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

/// A token, password or key. `Debug` and `Display` print `[redacted]`, and it cannot be serialized, so no log line,
/// status page or error can leak it by accident. Clones share the text.
///
/// It deliberately has no `==`: a comparison with what a peer sent must take constant time.
#[derive(Clone)]
pub struct Secret(Arc<str>);

const SHOWN: &str = "[redacted]";

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
