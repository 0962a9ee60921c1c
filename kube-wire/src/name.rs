//! Validated names.
//!
//! A validated name cannot change: the newtypes have no public field and no setter. The rules and their messages are those of
//! `k8s.io/apimachinery/pkg/api/validate/content`, so that users get messages that they know. What names *mean* (virtual or
//! host) is not decided here.

mod rules;

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) use rules::is_plain_segment;
pub use rules::{Violation, Violations, dns_label, dns_subdomain, label_key, label_value, path_segment};

/// The name of a cluster as operators write it: a DNS-1123 label, because it becomes the first label of a host name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

/// A DNS-1123 label: the form of a Namespace's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsLabel(Arc<str>);

/// A DNS-1123 subdomain: the form of most names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsSubdomain(Arc<str>);

/// A non-empty name that is exactly one segment of a URL path, decoded: no `/`, no `%`, not `.` nor `..`, no control
/// characters. This is the loosest rule Kubernetes has for a name (`system:node` passes) and the one a path needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName<'a>(Cow<'a, str>);

/// The text is not a name of the required form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name {text:?}: {violations}")]
pub struct InvalidName {
    text: String,
    violations: Violations,
}

// === impl ClusterName, DnsLabel, DnsSubdomain ===

macro_rules! owned_name {
    ($name:ident, $rule:path) => {
        impl $name {
            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                match $rule(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(violations) => Err(InvalidName::new(text, violations)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        /// Labels and subdomains contain only bytes that a path segment may contain, and are never `.` or `..`.
        impl<'a> From<&'a $name> for SegmentName<'a> {
            fn from(name: &'a $name) -> Self {
                Self(Cow::Borrowed(&name.0))
            }
        }
    };
}

owned_name!(ClusterName, dns_label);
owned_name!(DnsLabel, dns_label);
owned_name!(DnsSubdomain, dns_subdomain);

impl From<ClusterName> for DnsLabel {
    fn from(name: ClusterName) -> Self {
        Self(name.0)
    }
}

impl From<DnsLabel> for DnsSubdomain {
    fn from(name: DnsLabel) -> Self {
        Self(name.0)
    }
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
    fn names_say_why_they_are_refused() {
        let error = "a.b".parse::<ClusterName>().unwrap_err();
        assert_eq!(error.to_string(), "invalid name \"a.b\": must not contain dots");
        assert_eq!("ke-beijing".parse::<ClusterName>().unwrap().as_str(), "ke-beijing");
    }

    #[test]
    fn names_survive_serde() {
        let name: DnsSubdomain = serde_json::from_str("\"a.b\"").unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"a.b\"");
        assert!(serde_json::from_str::<DnsLabel>("\"a.b\"").is_err());
        // An escape forces serde to hand over an owned string.
        assert_eq!(serde_json::from_str::<DnsLabel>(r#""\u0061""#).unwrap().as_str(), "a");
    }

    #[test]
    fn a_segment_holds_whatever_cannot_leave_it() {
        for good in ["a", "system:node", "sha256:AB@c", "Iñtër", "..a", "*", "a b"] {
            assert_eq!(SegmentName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a%b", "a\0", "a\nb", "\u{7f}", "a\u{85}"] {
            assert!(SegmentName::new(bad).is_err(), "{bad:?}");
        }
    }
}
