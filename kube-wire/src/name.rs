//! Validated names.
//!
//! A validated name cannot change: the newtype has no public field and no setter. The rules and their messages are those of
//! `k8s.io/apimachinery/pkg/api/validate/content`, so that users get messages that they know. What names *mean* (virtual or
//! host) is not decided here.

mod rules;

use std::borrow::Cow;
use std::fmt;

pub(crate) use rules::is_plain_segment;
pub use rules::{Violation, Violations, dns_label, dns_subdomain, label_key, label_value, path_segment};

/// A non-empty name that is exactly one segment of a URL path, decoded: no `/`, no `%`, not `.` nor `..`, no control
/// characters. This is the weakest rule that Kubernetes has for names (`system:node` is valid), and the one for paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName<'a>(Cow<'a, str>);

/// The text is not a name of the required form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name {text:?}: {violations}")]
pub struct InvalidName {
    text: String,
    violations: Violations,
}

// === impl SegmentName ===

impl<'a> SegmentName<'a> {
    /// Checks decoded text.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Result<Self, InvalidName> {
        let text = text.into();
        match path_segment(&text) {
            Ok(()) => Ok(Self(text)),
            Err(violations) => Err(InvalidName::new(&text, violations)),
        }
    }

    /// The name, decoded.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same name, owned.
    pub fn into_owned(self) -> SegmentName<'static> {
        SegmentName(Cow::Owned(self.0.into_owned()))
    }

    /// The same name, borrowed from this one.
    pub fn borrowed(&self) -> SegmentName<'_> {
        SegmentName(Cow::Borrowed(&self.0))
    }
}

impl AsRef<str> for SegmentName<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SegmentName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl InvalidName ===

impl InvalidName {
    fn new(text: &str, violations: Violations) -> Self {
        // The name of a hostile peer is truncated, because logs and messages contain it.
        Self { text: text.chars().take(300).collect(), violations }
    }

    /// The violated rules.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_names_have_the_reason() {
        let error = SegmentName::new("..").unwrap_err();
        assert_eq!(error.to_string(), "invalid name \"..\": may not be '..'");
    }

    #[test]
    fn a_segment_can_contain_any_text_that_stays_in_it() {
        for good in ["a", "system:node", "sha256:AB@c", "Iñtër", "..a", "*", "a b"] {
            assert_eq!(SegmentName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a%b", "a\0", "a\nb", "\u{7f}", "a\u{85}"] {
            assert!(SegmentName::new(bad).is_err(), "{bad:?}");
        }
    }
}
