//! Names that cross the tunnel.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a cluster as operators write it in both configurations: a DNS-1123 label, because it is the first label
/// of the endpoint's host name (`ke-beijing.atoll.internal`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

/// The ID of an agent: the common name of its certificate. Also a DNS-1123 label, so that file names, metric labels and log
/// lines can contain it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

/// The text is not a DNS-1123 label (RFC 1123, section 2.1, as Kubernetes applies it).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a DNS label: 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit"
)]
pub struct InvalidName {
    text: String,
}

fn label(text: &str) -> Result<Arc<str>, InvalidName> {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let valid = bytes.len() <= 63
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-');
    if valid {
        Ok(text.into())
    } else {
        // The name of a hostile peer is truncated, because logs and refusals contain it.
        Err(InvalidName { text: text.chars().take(80).collect() })
    }
}

macro_rules! label_newtype {
    ($name:ident) => {
        impl $name {
            /// The label.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                label(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
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
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

label_newtype!(ClusterName);
label_newtype!(AgentId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_checked_as_kubernetes_checks_them() {
        for good in ["a", "ke-beijing", "7", "a-1-b", &"x".repeat(63)] {
            assert_eq!(good.parse::<ClusterName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", "a/b", &"x".repeat(64)] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad}");
        }
    }
}
