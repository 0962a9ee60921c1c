//! The rules for writes to Namespaces.

use super::protected::ProtectedKeys;
use crate::name::HIDDEN_PREFIX;
use crate::parked::unparked;
use crate::pod_security::{self, Level};

/// The rules for writes to Namespaces.
#[derive(Clone, Debug)]
pub struct NamespaceRules {
    protected: ProtectedKeys,
    pub(super) labels: Vec<(String, String)>,
    pub(super) annotations: Vec<(String, String)>,
    enforced: Option<Level>,
    /// Whether `labels` has the labels that the host enforces, so that they do not depend on the body.
    is_apply: bool,
}

// === impl NamespaceRules ===

impl Default for NamespaceRules {
    /// The keys that are protected by default. None of them is set.
    fn default() -> Self {
        Self::new(ProtectedKeys::default())
    }
}

impl NamespaceRules {
    /// Protects these keys of labels and annotations. Atoll's own keys are always protected.
    pub fn new(protected: ProtectedKeys) -> Self {
        Self { protected, labels: Vec::new(), annotations: Vec::new(), enforced: None, is_apply: false }
    }

    /// The same rules if the host enforces `level`, or a stricter one that a client requests.
    #[must_use]
    pub fn enforcing(mut self, level: Option<Level>) -> Self {
        self.enforced = level;
        self
    }

    /// The same rules for a new Namespace, which gets these annotations.
    #[must_use]
    pub fn with_annotations<'a>(mut self, annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.annotations = annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self
    }

    /// The same rules for a Namespace that has these labels and annotations: a client may send the protected ones among
    /// them back as they are, and cannot drop them.
    #[must_use]
    pub fn for_existing(
        &self,
        labels: impl IntoIterator<Item = (String, String)>,
        annotations: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let protected = |(key, _): &(String, String)| self.protects(key);
        // The labels of Atoll follow from the request.
        let foreign = |entry: &(String, String)| protected(entry) && !is_ours(&entry.0);
        Self {
            labels: labels.into_iter().filter(foreign).collect(),
            annotations: annotations.into_iter().filter(|entry| protected(entry) && !is_parked(&entry.0)).collect(),
            ..self.clone()
        }
    }

    /// The same rules for an apply to a Namespace with these labels. An apply removes fields that it omits, so it must
    /// repeat the labels that the host enforces. It repeats them unchanged, because the patched object is not known yet.
    #[must_use]
    pub fn for_apply(&self, labels: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_enforced = |(key, _): &(String, String)| pod_security::is_enforced(key) || key == pod_security::MARK;
        let labels = labels.into_iter().filter(|label| self.enforced.is_some() && is_enforced(label)).collect();
        Self { labels, is_apply: true, ..self.clone() }
    }

    /// The labels by which the host enforces a level, if they depend on the body.
    pub(super) fn enforced_labels(&self, requested: Option<&str>) -> impl Iterator<Item = (String, String)> + use<> {
        let level = self.enforced.filter(|_| !self.is_apply);
        let labels = level.map(|level| level.labels(requested));
        labels.into_iter().flatten().map(|(key, value)| (key.to_owned(), value.to_owned()))
    }

    /// The host's key of a label, if it differs from the client's.
    pub(super) fn requested_key(&self, key: &str) -> Option<String> {
        self.enforced.and_then(|_| pod_security::requested_key(key))
    }

    pub(super) fn protects(&self, key: &str) -> bool {
        is_ours(key) || self.protected.matches(key)
    }
}

/// Whether clients never see the key.
fn is_ours(key: &str) -> bool {
    key.starts_with(HIDDEN_PREFIX) || is_parked(key)
}

/// Whether the host has this key in place of a client's.
fn is_parked(key: &str) -> bool {
    unparked(key).is_some()
}
