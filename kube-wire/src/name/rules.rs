//! The rules, with Kubernetes' own messages.
//!
//! Each rule implements a regular expression of `k8s.io/apimachinery/pkg/api/validate/content` by hand, because these
//! functions run for every request.

use std::fmt;

/// All rules that a text violates, in Kubernetes' order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// One violated rule. Its `Display` is the message of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Empty.
    #[error("must be non-empty")]
    Empty,
    /// Longer than allowed.
    #[error("must be no more than {max} bytes")]
    TooLong {
        /// The limit, in bytes.
        max: usize,
    },
    /// A subdomain instead of a label.
    #[error("must not contain dots")]
    Dots,
    /// Not a DNS-1123 label.
    #[error(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )]
    NotLabel,
    /// Not a DNS-1123 subdomain.
    #[error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )]
    NotSubdomain,
    /// The part of a label key after the slash is malformed.
    #[error(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    )]
    NotQualified,
    /// A label key with more than one slash.
    #[error(
        "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        Self::NotQualified
    )]
    ManySlashes,
    /// Not a label value.
    #[error(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )]
    NotLabelValue,
    /// A violation in the part of a label key before the slash.
    #[error("prefix part {0}")]
    Prefix(Box<Self>),
    /// A violation in the part of a label key after the slash.
    #[error("name part {0}")]
    NamePart(Box<Self>),
    /// `.` or `..`.
    #[error("may not be '{0}'")]
    MayNotBe(&'static str),
    /// `/` or `%`.
    #[error("may not contain '{0}'")]
    MayNotContain(&'static str),
    /// A control character. Kubernetes allows it in a path segment, but this crate does not.
    #[error("may not contain control characters")]
    Control,
}

/// `IsDNS1123Label`: 1 to 63 lower-case letters, digits or `-`, beginning and ending with a letter or digit.
pub fn dns_label(text: &str) -> Result<(), Violations> {
    let mut found = Vec::new();
    too_long(&mut found, text, 63);
    if !is_label(text) {
        found.push(if is_subdomain(text) { Violation::Dots } else { Violation::NotLabel });
    }
    Violations::unless_empty(found)
}

/// `IsDNS1123Subdomain`: labels of any length joined by dots, at most 253 bytes in all.
pub fn dns_subdomain(text: &str) -> Result<(), Violations> {
    let mut found = Vec::new();
    too_long(&mut found, text, 253);
    if !is_subdomain(text) {
        found.push(Violation::NotSubdomain);
    }
    Violations::unless_empty(found)
}

/// `IsLabelKey`: `[subdomain/]name`, the name 1 to 63 bytes.
pub fn label_key(text: &str) -> Result<(), Violations> {
    let mut found = Vec::new();
    let name = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return Err(Violations(vec![Violation::ManySlashes]));
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                found.push(Violation::Prefix(Box::new(Violation::Empty)));
            } else if let Err(violations) = dns_subdomain(prefix) {
                found.extend(violations.0.into_iter().map(|violation| Violation::Prefix(Box::new(violation))));
            }
            name
        }
        None => text,
    };
    let mut about_name = Vec::new();
    if name.is_empty() {
        about_name.push(Violation::Empty);
    }
    too_long(&mut about_name, name, 63);
    if !is_qualified(name) {
        about_name.push(Violation::NotQualified);
    }
    found.extend(about_name.into_iter().map(|violation| Violation::NamePart(Box::new(violation))));
    Violations::unless_empty(found)
}

/// `IsLabelValue`: empty, or like the name part of a key.
pub fn label_value(text: &str) -> Result<(), Violations> {
    let mut found = Vec::new();
    too_long(&mut found, text, 63);
    if !text.is_empty() && !is_qualified(text) {
        found.push(Violation::NotLabelValue);
    }
    Violations::unless_empty(found)
}

/// `IsPathSegmentName`, and stricter: also not empty and without control characters.
pub fn path_segment(text: &str) -> Result<(), Violations> {
    if is_plain_segment(text) {
        return Ok(());
    }
    let mut found = Vec::new();
    match text {
        "" => found.push(Violation::Empty),
        "." => found.push(Violation::MayNotBe(".")),
        ".." => found.push(Violation::MayNotBe("..")),
        _ => {}
    }
    if text.contains('/') {
        found.push(Violation::MayNotContain("/"));
    }
    if text.contains('%') {
        found.push(Violation::MayNotContain("%"));
    }
    if text.contains(char::is_control) {
        found.push(Violation::Control);
    }
    Violations::unless_empty(found)
}

/// A fast check: `true` if the bytes alone show that a segment is valid, as for nearly all segments. `false` means unknown.
pub(crate) fn is_plain_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
    text.bytes().all(plain) && !matches!(text, "" | "." | "..")
}

fn too_long(found: &mut Vec<Violation>, text: &str, max: usize) {
    if text.len() > max {
        found.push(Violation::TooLong { max });
    }
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(text.as_bytes(), alphanumeric, |byte| alphanumeric(byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified(text: &str) -> bool {
    framed(text.as_bytes(), u8::is_ascii_alphanumeric, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Whether `text` is not empty, its ends satisfy `end` and all of it satisfies `inner`.
fn framed(text: &[u8], end: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    text.first().is_some_and(&end) && text.last().is_some_and(end) && text.iter().all(inner)
}

// === impl Violations ===

impl Violations {
    fn unless_empty(found: Vec<Violation>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self(found)) }
    }

    /// Each violation, in Kubernetes' order.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

/// Joined by `; `, as Kubernetes joins them.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for good in ["a", "a1", "a--1--2--b", "0", &"a".repeat(63)] {
            assert_eq!(dns_label(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "-", "a-", "-a", "a_b", ".", "a.", "a b", "é"] {
            assert_eq!(dns_label(bad), Err(Violations(vec![Violation::NotLabel])), "{bad}");
        }
        assert_eq!(dns_label("a.b"), Err(Violations(vec![Violation::Dots])));
        assert_eq!(dns_label(&"a".repeat(64)), Err(Violations(vec![Violation::TooLong { max: 63 }])));
    }

    #[test]
    fn subdomains() {
        for good in ["a", "a.b.c", "0.1", &"a".repeat(253)] {
            assert_eq!(dns_subdomain(good), Ok(()), "{good}");
        }
        for bad in ["", "a..b", ".a", "a.", "a.B", "a@b", &"a".repeat(254)] {
            assert!(dns_subdomain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_fast_check_of_segments_agrees_with_the_rules() {
        for text in ["", ".", "..", "a/b", "a%b", "a\0", "\u{85}", "é", "a b"] {
            assert!(!is_plain_segment(text), "{text:?}");
        }
        assert!(is_plain_segment("system:node-1.a_b") && is_plain_segment("..."));
    }

    #[test]
    fn label_keys_and_values() {
        for good in ["simple", "a/b", "1.2.3/4", "Upper_is.OK", "example.com/Upper"] {
            assert_eq!(label_key(good), Ok(()), "{good}");
        }
        for bad in ["", "only/one/slash", "Example.com/a", "a/", "/a", "-a", "a-", "a^b"] {
            assert!(label_key(bad).is_err(), "{bad}");
        }
        for good in ["", "a", "a_b.c-d", "12345"] {
            assert_eq!(label_value(good), Ok(()), "{good}");
        }
        for bad in ["-a", "a.", "a/b", "é", &"a".repeat(64)] {
            assert!(label_value(bad).is_err(), "{bad}");
        }
    }
}
