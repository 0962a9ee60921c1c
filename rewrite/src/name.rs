//! The names of virtual clusters, and of namespaces on both sides.
//!
//! Virtual and host namespaces are both DNS labels, and the engine must never confuse them. So they have different types, and
//! only [`HostNamespace::derive`] and a [`Mapping`](crate::Mapping) convert one to the other.

use std::borrow::Borrow;
use std::fmt;

use bytes::Bytes;

mod derive;

pub use derive::endings;

/// Labels and annotations with this prefix are Atoll's own.
pub const HIDDEN_PREFIX: &str = "atoll.dev/";
/// The label of a host namespace with the name of its virtual cluster.
pub const CLUSTER_LABEL: &str = "atoll.dev/virtual-cluster";
/// The label of a host namespace with its name in the virtual cluster.
pub const NAMESPACE_LABEL: &str = "atoll.dev/namespace";
/// The label that the API server sets on every Namespace: its name (`LabelMetadataName` in core/v1).
pub const METADATA_NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The annotation in which kubectl, and the API server for it, store the last applied configuration
/// (`LastAppliedConfigAnnotation` in core/v1).
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The label of a shared object that a virtual cluster created: only virtual clusters with an overlay see it.
pub const SHARED_LABEL: &str = "atoll.dev/shared";
/// The prefix of annotations of shared objects that are overlays: the labels and annotations of the virtual cluster whose name
/// follows.
pub const OVERLAY_PREFIX: &str = "overlay.atoll.dev/";
/// The prefix of annotations of shared objects that show that the virtual cluster whose name follows had an overlay.
pub const LEFT_PREFIX: &str = "left.atoll.dev/";
/// The prefix of field managers on the host for what a virtual cluster writes to a shared object: `atoll:CLUSTER:MANAGER`.
pub const MANAGER_PREFIX: &str = "atoll:";

/// The longest DNS label (RFC 1123), in bytes; Kubernetes enforces it for namespaces.
pub const MAX_LABEL: usize = 63;

/// The name of a virtual cluster: a DNS label, because it is part of host names and label values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Label);

/// The name of a namespace as the clients of a virtual cluster see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualNamespace(Label);

/// The name of a namespace as the host cluster stores it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostNamespace(Label);

/// The text is not a DNS label (RFC 1123): lower-case letters, digits and `-`, at most 63, `-` not at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a DNS label: lower-case letters, digits and '-', at most 63, '-' not at an end")]
pub struct NotALabel;

/// A checked DNS label, kept as [`Bytes`] so that an edit can hand it to the output without a copy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Label(Bytes);

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

// === impl Label ===

impl Label {
    fn new(bytes: &[u8]) -> Result<Self, NotALabel> {
        if is_label(bytes) { Ok(Self(Bytes::copy_from_slice(bytes))) } else { Err(NotALabel) }
    }
}

/// Whether a key of a label or annotation is Atoll's own: in `atoll.dev` or a subdomain.
pub fn is_own_key(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == "atoll.dev" || domain.ends_with(".atoll.dev"))
}

/// Whether the bytes are a DNS label (RFC 1123), which Kubernetes requires for the name of a namespace.
pub fn is_label(bytes: &[u8]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let ends = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    bytes.len() <= MAX_LABEL && bytes.iter().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

#[cfg(test)]
mod tests;
