//! Why text is no label selector.

use crate::go_quote::GoQuoted;

/// Why text is no label selector. The text is Kubernetes' own.
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

    /// Kubernetes prints the missing field path as `<nil>`; the text is kept because it is what clients know.
    pub(super) fn about_key(key: &str, violations: &str) -> Self {
        Self::in_requirement(&format!("<nil>: Invalid value: {}: {violations}", GoQuoted(key)))
    }
}
