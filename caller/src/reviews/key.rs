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
struct Question(Context);

// === impl Key ===

impl Key {
    /// The owner of a token.
    pub(crate) fn of_token(token: &str) -> Self {
        Self::new(&digest(&SHA256, token.as_bytes()))
    }

    /// Whether a user is allowed to do something.
    pub(crate) fn of_question(user: &HostUser, attributes: &Attributes<'_>) -> Self {
        let Attributes { verb, group, version, resource, subresource, name, namespace } = attributes;
        let mut question = Question::of_user(user);
        for text in [verb, group, version, resource, subresource, name, &namespace.as_str()] {
            question.text(text);
        }
        question.finish()
    }

    /// All rights of a user in a namespace.
    pub(crate) fn of_rules(user: &HostUser, namespace: &HostNamespace) -> Self {
        let mut question = Question::of_user(user);
        question.text(namespace.as_str());
        question.finish()
    }

    fn new(digest: &Digest) -> Self {
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

// === impl Question ===

impl Question {
    fn of_user(user: &HostUser) -> Self {
        let mut question = Self(Context::new(&SHA256));
        question.text(user.name());
        question.text(user.uid().unwrap_or_default());
        question.texts(user.groups());
        question.count(user.extra().len());
        for (key, values) in user.extra() {
            question.text(key);
            question.texts(values);
        }
        question
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
