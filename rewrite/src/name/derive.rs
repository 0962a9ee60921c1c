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

/// The digits of the digest that ends a shortened name.
#[derive(Clone, Copy)]
struct Digits {
    /// One digit for each value of a group of bits of the digest.
    alphabet: &'static [u8],
    bits: usize,
    count: usize,
}

/// 100 bits: nobody can construct a collision. The alphabet is base32 of RFC 4648, so that a name keeps as many of its
/// own characters as possible.
const DIGITS: Digits = Digits { alphabet: b"abcdefghijklmnopqrstuvwxyz234567", bits: 5, count: 20 };

/// 40 bits, which a client can search exhaustively, so no new namespace gets such a name. The two forms differ: in the
/// new one, the last 20 characters contain no hyphen.
const FORMER_DIGITS: Digits = Digits { alphabet: b"0123456789abcdef", bits: 4, count: 10 };

/// The suffixes after each hyphen of a virtual cluster's name. No other virtual cluster of the same host may have one of
/// these names.
///
/// Namespace `a-b` of `c` and namespace `a` of `b-c` have the same host name, `a-b-c`. The second one cannot be created.
/// But an object with a finalizer outlives a namespace that is finalized by force, so the first cluster could leave a
/// RoleBinding there for the second.
pub fn endings(cluster: &str) -> impl Iterator<Item = &str> {
    cluster.match_indices('-').map(|(at, _)| &cluster[at + 1..])
}

// === impl HostNamespace ===

impl HostNamespace {
    /// The host name for a virtual one: `<virtual>-<cluster>`, shortened with a digest when that is too long.
    pub fn derive(name: &VirtualNamespace, cluster: &ClusterName) -> Self {
        Self::join(name.as_str(), cluster, "", DIGITS)
    }

    /// The host name that earlier versions derived, if it differs. Existing namespaces with such a name still belong to
    /// their cluster; no new one gets such a name.
    pub fn derive_formerly(name: &VirtualNamespace, cluster: &ClusterName) -> Option<Self> {
        is_long(name.as_str(), cluster).then(|| Self::join(name.as_str(), cluster, "", FORMER_DIGITS))
    }

    /// The namespace that is the cluster scope of a virtual cluster on the host: `atoll-root-<cluster>`.
    pub fn root(cluster: &ClusterName) -> Self {
        // A digest of something that no virtual name equals, so that a shortened root collides with no other.
        Self::join(ROOT_PREFIX.trim_end_matches('-'), cluster, "root", DIGITS)
    }

    /// The name of the root namespace in earlier versions, if it differs.
    pub fn former_root(cluster: &ClusterName) -> Option<Self> {
        let name = ROOT_PREFIX.trim_end_matches('-');
        is_long(name, cluster).then(|| Self::join(name, cluster, "root", FORMER_DIGITS))
    }

    /// Whether the name is in the form of a root namespace, of whichever virtual cluster.
    pub fn is_root(&self) -> bool {
        self.as_str().starts_with(ROOT_PREFIX)
    }

    fn join(name: &str, cluster: &ClusterName, role: &str, digits: Digits) -> Self {
        let whole = format!("{name}-{cluster}");
        if !is_long(name, cluster) {
            return Self(Label(Bytes::from(whole)));
        }
        let mut digest = Sha256::new();
        digest.update(name);
        digest.update([0]);
        digest.update(cluster.as_str());
        digest.update(role);
        let digest = digest.finalize();

        let mut short = String::with_capacity(MAX_LABEL);
        short.push_str(whole[..MAX_LABEL - 1 - digits.count].trim_end_matches('-'));
        short.push('-');
        short.extend(digits.of(&digest));
        Self(Label(Bytes::from(short)))
    }
}

/// Whether the two together are too long for a label.
fn is_long(name: &str, cluster: &ClusterName) -> bool {
    name.len() + 1 + cluster.as_str().len() > MAX_LABEL
}

// === impl Digits ===

impl Digits {
    /// The first bits of a digest.
    fn of(self, digest: &[u8]) -> impl Iterator<Item = char> {
        let is_set = |bit: usize| digest[bit / 8] >> (7 - bit % 8) & 1 == 1;
        let value =
            move |first: usize| (first..first + self.bits).fold(0, |value, bit| value << 1 | usize::from(is_set(bit)));
        (0..self.count).map(move |digit| char::from(self.alphabet[value(digit * self.bits)]))
    }
}
