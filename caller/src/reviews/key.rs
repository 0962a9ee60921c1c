//! The key of a cached answer: a digest of the complete question.
//!
//! A key has 32 bytes regardless of the caller's groups and extra fields, so that the memory of a cache is bounded. For
//! tokens, a digest also avoids keeping them.

use aws_lc_rs::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN, digest};
use rewrite::HostNamespace;

use super::question::Attributes;
use crate::identity::HostUser;

/// SHA-256 of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; SHA256_OUTPUT_LEN]);

/// Writes each part after its length, so that two different questions never have the same bytes.
struct Parts(Context);

// === impl Key ===

impl Key {
    /// The owner of a token.
    pub(crate) fn of_token(token: &str) -> Self {
        Self::new(&digest(&SHA256, token.as_bytes()))
    }

    /// Whether a user is allowed to do something.
    pub(crate) fn of_question(user: &HostUser, attributes: &Attributes<'_>) -> Self {
        let Attributes { verb, group, version, resource, subresource, name, namespace } = attributes;
        let mut parts = Parts::of_user(user);
        for part in [verb, group, version, resource, subresource, name, &namespace.as_str()] {
            parts.text(part);
        }
        parts.finish()
    }

    /// All rights of a user in a namespace.
    pub(crate) fn of_rules(user: &HostUser, namespace: &HostNamespace) -> Self {
        let mut parts = Parts::of_user(user);
        parts.text(namespace.as_str());
        parts.finish()
    }

    fn new(digest: &Digest) -> Self {
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

// === impl Parts ===

impl Parts {
    fn of_user(user: &HostUser) -> Self {
        let mut parts = Self(Context::new(&SHA256));
        parts.text(user.name());
        parts.text(user.uid().unwrap_or_default());
        parts.texts(user.groups());
        parts.count(user.extra().len());
        for (key, values) in user.extra() {
            parts.text(key);
            parts.texts(values);
        }
        parts
    }

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        for text in texts {
            self.text(text);
        }
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    fn finish(self) -> Key {
        Key::new(&self.0.finish())
    }
}
