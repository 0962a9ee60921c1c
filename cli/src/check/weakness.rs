//! Weaknesses of a host in the isolation of its virtual clusters.

use std::fmt;

use clap::ValueEnum;
use ops::config::{Location, Problem};

/// A kind of weakness. The help of `--accept` shows these texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Check {
    /// `unsafeDirectAccess` or `unverifiedPolicies` is set: the host may not confine tokens to their virtual clusters
    DirectAccess,
    /// The host grants all users rights that only its administrators should have
    Authorizer,
    /// A binding grants a role to all users, to all service accounts, or to callers without credentials
    OpenBinding,
    /// Every node may read all Secrets and write all Nodes of the host
    NodeRole,
    /// A virtual cluster selects its nodes by labels that a node may set on itself
    NodeLabel,
    /// Virtual clusters share nodes
    SharedNodes,
    /// A ClusterRole of the host aggregates rules that virtual clusters write
    Aggregation,
    /// A webhook or an admission policy selects what it checks by labels that tenants may set
    Admission,
    /// A NetworkPolicy admits namespaces by a label that tenants may set
    NetworkPolicy,
    /// A namespace of the host, or a cluster that left the configuration, has a name that clashes with a virtual
    /// cluster
    NamespaceName,
    /// A RoleBinding exists in a namespace that does not exist, and takes effect when somebody creates the namespace
    LeftBinding,
    /// A claim of any virtual cluster can bind a PersistentVolume
    FreeVolume,
    /// A StorageClass lets claims name Secrets of the operator
    StorageSecret,
}

/// A weakness, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weakness {
    pub(super) check: Check,
    pub(super) problem: Problem,
    pub(super) advice: String,
}

// === impl Check ===

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every variant has a value.
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

// === impl Weakness ===

impl Weakness {
    /// A weakness at an entry of the configuration. Names in `message` may come from the host.
    pub(super) fn at(check: Check, location: Option<Location>, message: impl fmt::Display, advice: &str) -> Self {
        Self { check, problem: Problem::new(location, message), advice: advice.to_owned() }
    }
}

/// The first names of a list, and how many more there are.
pub(super) fn shorten(names: &[impl AsRef<str>]) -> String {
    const MAX_SHOWN: usize = 3;
    let shown = names.iter().take(MAX_SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_describes_every_kind() {
        let guide = include_str!("../../../docs/install.md");
        for kind in Check::value_variants() {
            assert!(guide.contains(&format!("\n| `{kind}` | ")), "{kind}");
        }
    }

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(shorten(&["a"]), "a");
        assert_eq!(shorten(&["a", "b", "c"]), "a, b, c");
        assert_eq!(shorten(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
