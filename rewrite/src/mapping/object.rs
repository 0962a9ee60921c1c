//! Cluster-scoped custom objects.
//!
//! `a` of a virtual cluster is `a.<cluster>` on the host, and has the same label as the namespaces of the cluster. Names of
//! custom objects are DNS subdomains, and the name of a cluster is a label without dots. So the part after the last dot names
//! the cluster, and two clusters never use the same name. The name alone does not make an object part of a cluster: it must
//! also have the label.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::name::{ClusterName, MAX_LABEL};
use crate::same::Same;

/// Kinds whose objects are named so, by group and kind.
pub type RenamedKinds = HashSet<(String, String)>;

/// The cluster-scoped custom objects of one virtual cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomObjects {
    kinds: Arc<RenamedKinds>,
    /// The object of the current request: its name on the host, and in the virtual cluster.
    requested: Option<(Bytes, Bytes)>,
}

/// The longest name of a custom object (`DNS1123SubdomainMaxLength` in apimachinery's `pkg/util/validation`).
pub const MAX_NAME: usize = 253;

/// The name is too long, because the name of the virtual cluster is appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be no more than {room} bytes in this virtual cluster")]
pub struct TooLong {
    /// The maximum length.
    pub room: usize,
}

// === impl CustomObjects ===

impl CustomObjects {
    /// The kinds of custom objects with such names.
    pub(crate) fn kinds(&self) -> Arc<RenamedKinds> {
        Arc::clone(&self.kinds)
    }

    /// Replaces these kinds.
    pub(super) fn set_kinds(&mut self, kinds: Arc<RenamedKinds>) {
        self.kinds = kinds;
    }

    /// The current request is about the object `name`.
    pub(super) fn note_requested(&mut self, cluster: &ClusterName, name: &str) {
        self.requested = host_name(cluster, name).ok().map(|host| (Bytes::from(host), Bytes::from(name.to_owned())));
    }

    /// The object of the current request: its name on the host, and in the virtual cluster.
    pub(crate) fn requested(&self) -> Option<&(Bytes, Bytes)> {
        self.requested.as_ref()
    }

    /// Whether objects of a kind have such names. `api_version` is `group/version`.
    pub(crate) fn renames(&self, api_version: &str, kind: &str) -> bool {
        let Some((group, _)) = api_version.split_once('/') else { return false };
        // Few hosts have many kinds, and a pair of borrowed strings is not a key of the set.
        self.kinds.iter().any(|(known, name)| known == group && name == kind)
    }
}

impl Same for CustomObjects {
    fn is_same(&self, other: &Self) -> bool {
        let Self { kinds, requested } = self;
        kinds.is_same(&other.kinds) && *requested == other.requested
    }
}

/// The host's name for an object of a cluster.
pub(super) fn host_name(cluster: &ClusterName, name: &str) -> Result<String, TooLong> {
    let room = MAX_NAME - 1 - cluster.as_str().len();
    if name.len() > room { Err(TooLong { room }) } else { Ok(format!("{name}.{cluster}")) }
}

/// The virtual name of an object for its host name. `None` if the host name does not have the form of this cluster.
pub(super) fn virtual_name(cluster: &ClusterName, host: &[u8]) -> Option<Bytes> {
    let name = host.strip_suffix(cluster.as_ref())?.strip_suffix(b".")?;
    (!name.is_empty()).then(|| Bytes::copy_from_slice(name))
}

const _: () = assert!(MAX_NAME > 1 + MAX_LABEL, "there is always room for a name");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cluster(name: &str) -> ClusterName {
        name.parse().unwrap()
    }

    proptest! {
        #[test]
        fn a_host_name_is_mapped_back_in_its_cluster_only(
            name in "[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?",
            (one, other) in ("[a-z]([-a-z0-9]{0,20}[a-z0-9])?", "[a-z]([-a-z0-9]{0,20}[a-z0-9])?"),
        ) {
            let host = host_name(&cluster(&one), &name).unwrap();
            prop_assert!(host.len() <= MAX_NAME);
            prop_assert_eq!(virtual_name(&cluster(&one), host.as_bytes()), Some(Bytes::from(name)));
            prop_assert_eq!(virtual_name(&cluster(&other), host.as_bytes()).is_some(), one == other);
        }
    }

    #[test]
    fn some_host_names_belong_to_no_cluster() {
        let ke = cluster("ke");
        for foreign in ["a", "a.hz", "ke", ".ke", "a-ke", "a.ke.b", ""] {
            assert_eq!(virtual_name(&ke, foreign.as_bytes()), None, "{foreign}");
        }
        assert_eq!(host_name(&ke, &"a".repeat(251)), Err(TooLong { room: 250 }));
        assert_eq!(host_name(&ke, &"a".repeat(250)).unwrap().len(), MAX_NAME);
    }

    #[test]
    fn kinds_are_of_a_group() {
        let kinds = [("example.com".to_owned(), "Widget".to_owned())].into_iter().collect();
        let mut ke = CustomObjects::default();
        ke.set_kinds(Arc::new(kinds));
        assert!(ke.renames("example.com/v1", "Widget") && ke.renames("example.com/v2beta1", "Widget"));
        assert!(!ke.renames("example.org/v1", "Widget") && !ke.renames("example.com/v1", "Other"));
        assert!(!ke.renames("v1", "Widget") && !ke.renames("", ""));
    }
}
