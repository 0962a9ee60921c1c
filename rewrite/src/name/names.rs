//! The three kinds of names, and how the host name of a namespace is made.
//!
//! The result is for creating a namespace and for references to one that does not exist yet. Whether a host namespace
//! belongs to a virtual cluster is never read from its name: `edge-edge` in cluster `1` and `edge` in cluster `edge-1`
//! have the same host name, and cluster `system` would own `kube-system`.

use std::borrow::Borrow;
use std::fmt;

use bytes::Bytes;

use super::digest::{DIGITS, Digits, FORMER_DIGITS, is_long};
use super::label::{Label, NotALabel};

/// The prefix of root namespaces. No name that is derived from a virtual name may have it.
const ROOT_PREFIX: &str = "atoll-root-";

/// Whether this name of a host namespace has the form of a root namespace, of any virtual cluster.
pub fn is_root(host: &str) -> bool {
    host.starts_with(ROOT_PREFIX)
}

/// The name of a virtual cluster: a DNS label, because it is part of host names and label values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Label);

/// The name of a namespace as the clients of a virtual cluster see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualNamespace(Label);

/// The name of a namespace as the host cluster stores it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostNamespace(Label);

macro_rules! names {
    ($($name:ident),*) => {$(
        // === the same for each name ===

        impl $name {
            /// Checks the text.
            pub fn new(text: &str) -> Result<Self, NotALabel> {
                Label::new(text.as_bytes()).map(Self)
            }

            /// Checks bytes of a body.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotALabel> {
                Label::new(bytes).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                std::str::from_utf8(&self.0.0).expect("a label is ASCII")
            }

            /// The name as bytes, shared rather than copied.
            pub fn to_bytes(&self) -> Bytes {
                self.0.0.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.as_str())
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0.0
            }
        }

        // For lookups in an index with the bytes of a body: `Bytes` hashes and compares like its slice.
        impl Borrow<[u8]> for $name {
            fn borrow(&self) -> &[u8] {
                &self.0.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NotALabel;

            fn from_str(text: &str) -> Result<Self, NotALabel> {
                Self::new(text)
            }
        }
    )*};
}

names!(ClusterName, VirtualNamespace, HostNamespace);

// === impl HostNamespace ===

impl HostNamespace {
    /// The host name for a virtual one: `<virtual>-<cluster>`, shortened with a digest when that is too long.
    pub fn derive(name: &VirtualNamespace, cluster: &ClusterName) -> Self {
        Self::join(name.as_str(), cluster, "", DIGITS)
    }

    /// The host name that earlier versions derived, if it differs. Existing namespaces with such a name still belong to
    /// their cluster; no new one gets such a name.
    pub fn derive_formerly(name: &VirtualNamespace, cluster: &ClusterName) -> Option<Self> {
        is_long(name.as_str(), cluster.as_str()).then(|| Self::join(name.as_str(), cluster, "", FORMER_DIGITS))
    }

    /// Whether this may be a shortened name, of whichever virtual cluster. Nobody can tell from the name itself.
    pub(crate) fn may_be_shortened(host: &[u8]) -> bool {
        [DIGITS, FORMER_DIGITS].into_iter().any(|digits| digits.may_end(host))
    }

    /// The namespace that is the cluster scope of a virtual cluster on the host: `atoll-root-<cluster>`.
    pub fn root(cluster: &ClusterName) -> Self {
        // A digest of something that no virtual name equals, so that a shortened root collides with no other.
        Self::join(ROOT_PREFIX.trim_end_matches('-'), cluster, "root", DIGITS)
    }

    /// The name of the root namespace in earlier versions, if it differs.
    pub fn former_root(cluster: &ClusterName) -> Option<Self> {
        let name = ROOT_PREFIX.trim_end_matches('-');
        is_long(name, cluster.as_str()).then(|| Self::join(name, cluster, "root", FORMER_DIGITS))
    }

    /// Whether the name has the form of a root namespace, of any virtual cluster.
    pub fn is_root(&self) -> bool {
        is_root(self.as_str())
    }

    fn join(name: &str, cluster: &ClusterName, role: &str, digits: Digits) -> Self {
        Self(Label(Bytes::from(digits.join(name, cluster.as_str(), role))))
    }
}

/// The suffixes after each hyphen of a virtual cluster's name. No other virtual cluster of the same host may have one of
/// these names.
///
/// Namespace `a-b` of `c` and namespace `a` of `b-c` have the same host name, `a-b-c`. The second one cannot be created.
/// But an object with a finalizer outlives a namespace that is finalized by force, so the first cluster could leave a
/// RoleBinding there for the second.
pub fn endings(cluster: &str) -> impl Iterator<Item = &str> {
    cluster.match_indices('-').map(|(at, _)| &cluster[at + 1..])
}
