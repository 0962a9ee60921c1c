//! How the labels and annotations of Namespaces are shown.

use crate::name::HIDDEN_PREFIX;
use crate::parked::{parked_annotation, unparked_annotation};
use crate::pod_security;

/// How a key of a map is shown.
pub(super) enum Key {
    /// Hidden, with its value.
    Hidden,
    /// Unchanged.
    Itself,
    /// Under another key, which was parked.
    As(String),
}

// === impl Key ===

impl Key {
    /// How a label of a Namespace is shown; `enforces`: whether the agent enforces a level of Pod Security.
    pub(super) fn of_label(key: &str, enforces: bool) -> Self {
        if key.starts_with(HIDDEN_PREFIX) || enforces && pod_security::is_enforced(key) {
            return Self::Hidden;
        }
        Self::unparked(pod_security::client_key(key).filter(|_| enforces))
    }

    /// How an annotation of a Namespace is shown. The node selector of the host's operator is hidden.
    pub(super) fn of_annotation(key: &str) -> Self {
        if key.starts_with(HIDDEN_PREFIX) || parked_annotation(key).is_some() {
            return Self::Hidden;
        }
        Self::unparked(unparked_annotation(key))
    }

    fn unparked(key: Option<&str>) -> Self {
        key.map_or(Self::Itself, |key| Self::As(key.to_owned()))
    }
}
