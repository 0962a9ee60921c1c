//! What of a host weakens the isolation of its virtual clusters.

use std::fmt;

use clap::ValueEnum;
use ops::config::{Place, Problem};

/// A kind of weakness. The help of `--accept` lists them with their texts here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Check {
    /// The host does not keep tokens of virtual clusters inside them: `unsafeDirectAccess`
    DirectAccess,
    /// The host allows everybody what only its administrators should be allowed
    Authorizer,
    /// A binding gives a role to all users, to all service accounts, or to callers without credentials
    OpenBinding,
    /// Every node may read all Secrets and write all Nodes of the host
    NodeRole,
    /// A virtual cluster selects its nodes by labels that a node may change on itself
    NodeLabel,
    /// Virtual clusters share nodes
    SharedNodes,
    /// A ClusterRole of the host takes in what virtual clusters write into theirs
    Aggregation,
    /// A webhook or an admission policy lets labels of tenants decide what it sees
    Admission,
    /// A NetworkPolicy lets in namespaces by a label that tenants may set
    NetworkPolicy,
    /// A namespace of the host, or a cluster that has left, has a name that a virtual cluster could need
    NamespaceName,
    /// A RoleBinding is left in a namespace that does not exist, and is in force when somebody creates it
    LeftBinding,
    /// A PersistentVolume is free for every virtual cluster
    FreeVolume,
    /// A StorageClass lets claims name Secrets of the operator
    StorageSecret,
}

/// One weakness: what is so, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weakness {
    pub(super) check: Check,
    pub(super) problem: Problem,
    pub(super) advice: String,
}

// === impl Check ===

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No variant is skipped.
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

// === impl Weakness ===

impl Weakness {
    /// At an entry of the configuration. Names in `message` may come from the host.
    pub(super) fn at(check: Check, place: Option<Place>, message: impl fmt::Display, advice: &str) -> Self {
        Self { check, problem: Problem::new(place, message), advice: advice.to_owned() }
    }
}

/// The first of many names, and how many there are besides.
pub(super) fn some(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_guide() {
        let guide = include_str!("../../../docs/install.md");
        for kind in Check::value_variants() {
            assert!(guide.contains(&format!("\n| `{kind}` | ")), "{kind}");
        }
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(some(&["a"]), "a");
        assert_eq!(some(&["a", "b", "c"]), "a, b, c");
        assert_eq!(some(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
