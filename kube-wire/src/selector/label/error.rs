//! Errors of label selectors.

use crate::go_quote::GoQuoted;

/// The text is not a label selector. The message is that of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LabelSelectorError {
    message: String,
}

// === impl LabelSelectorError ===

impl LabelSelectorError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    pub(super) fn in_requirement(problem: &str) -> Self {
        Self::new(format!("unable to parse requirement: {problem}"))
    }

    /// Kubernetes prints the missing field path as `<nil>`; the message is the same here, because clients know it.
    pub(super) fn about_key(key: &str, violations: &str) -> Self {
        Self::in_requirement(&format!("<nil>: Invalid value: {}: {violations}", GoQuoted(key)))
    }
}
