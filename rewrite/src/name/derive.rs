//! How the host name of a namespace is made.
//!
//! The result is for creating a namespace and for references to one that does not exist yet. Whether a host namespace
//! belongs to a virtual cluster is never read from its name: `edge-edge` in cluster `1` and `edge` in cluster `edge-1`
//! have the same host name, and cluster `system` would own `kube-system`.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{ClusterName, HostNamespace, Label, MAX_LABEL, VirtualNamespace};

/// Root namespaces begin with this; nothing that is derived from a virtual name may.
const ROOT_PREFIX: &str = "atoll-root-";

/// Hexadecimal digits of the digest in a shortened name: 40 bits, so that two of a thousand namespaces with equal
/// beginnings collide with a chance of one in two million (and then the second create is refused, not merged).
const DIGEST_DIGITS: usize = 10;

/// What follows each hyphen of a virtual cluster's name: no other virtual cluster of the same host may be called so.
///
/// Namespace `a-b` of `c` and namespace `a` of `b-c` have the same host name, `a-b-c`. The second one to be created is
/// refused. But an object with a finalizer outlives a namespace that is finalized by force, so the first one could leave a
/// RoleBinding there for the second.
pub fn endings(cluster: &str) -> impl Iterator<Item = &str> {
    cluster.match_indices('-').map(|(at, _)| &cluster[at + 1..])
}

// === impl HostNamespace ===

impl HostNamespace {
    /// The host name for a virtual one: `<virtual>-<cluster>`, shortened with a digest when that is too long.
    pub fn derive(name: &VirtualNamespace, cluster: &ClusterName) -> Self {
        Self::join(name.as_str(), cluster, "")
    }

    /// The namespace that is the cluster scope of a virtual cluster on the host: `atoll-root-<cluster>`.
    pub fn root(cluster: &ClusterName) -> Self {
        // A digest of something that no virtual name equals, so that a shortened root collides with no other.
        Self::join(ROOT_PREFIX.trim_end_matches('-'), cluster, "root")
    }

    /// Whether the name is in the form of a root namespace, of whichever virtual cluster.
    pub fn is_root(&self) -> bool {
        self.as_str().starts_with(ROOT_PREFIX)
    }

    fn join(name: &str, cluster: &ClusterName, role: &str) -> Self {
        let whole = format!("{name}-{cluster}");
        if whole.len() <= MAX_LABEL {
            return Self(Label(Bytes::from(whole)));
        }
        let mut digest = Sha256::new();
        digest.update(name);
        digest.update([0]);
        digest.update(cluster.as_str());
        digest.update(role);
        let digest = digest.finalize();

        let cut = whole[..MAX_LABEL - 1 - DIGEST_DIGITS].trim_end_matches('-');
        let mut short = String::with_capacity(MAX_LABEL);
        short.push_str(cut);
        short.push('-');
        for byte in &digest[..DIGEST_DIGITS / 2] {
            for digit in [byte >> 4, byte & 15] {
                short.push(char::from_digit(u32::from(digit), 16).expect("four bits are a hexadecimal digit"));
            }
        }
        Self(Label(Bytes::from(short)))
    }
}
