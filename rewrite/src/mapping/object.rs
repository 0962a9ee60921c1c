//! Cluster-scoped custom objects.
//!
//! `a` of a virtual cluster is `a.<cluster>` on the host, and has the same label as the namespaces of the cluster. Names of
//! custom objects are DNS subdomains, and the name of a cluster is a label without dots. So the part after the last dot names
//! the cluster, and two clusters never use the same name. The name alone does not make an object part of a cluster: it must
//! also have the label.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::Mapping;

/// Kinds whose objects are named so, by group and kind.
pub type RenamedKinds = HashSet<(String, String)>;

/// The longest name of a custom object (`DNS1123SubdomainMaxLength` in apimachinery's `pkg/util/validation`).
pub const MAX_NAME: usize = 253;

/// The name is too long, because the name of the virtual cluster is appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be no more than {room} bytes in this virtual cluster")]
pub struct TooLong {
    /// The maximum length.
    pub room: usize,
}

// === impl Mapping ===

impl Mapping {
    /// The same names, on a host that has these kinds.
    #[must_use]
    pub fn renaming(mut self, kinds: Arc<RenamedKinds>) -> Self {
        self.renamed = kinds;
        self
    }

    /// The kinds of custom objects with such names.
    pub(crate) fn renamed_kinds(&self) -> Arc<RenamedKinds> {
        Arc::clone(&self.renamed)
    }

    /// The same names, for the response to a request about the custom object `name`.
    #[must_use]
    pub fn about_object(mut self, name: &str) -> Self {
        self.about = self.object(name).ok().map(|host| (Bytes::from(host), Bytes::from(name.to_owned())));
        self
    }

    /// The host's name for a custom object.
    pub fn object(&self, name: &str) -> Result<String, TooLong> {
        let room = MAX_NAME - 1 - self.cluster().as_str().len();
        if name.len() > room { Err(TooLong { room }) } else { Ok(format!("{name}.{}", self.cluster())) }
    }

    /// The virtual name of a custom object for its host name. `None` if the host name does not have this cluster's form.
    pub fn seen_object(&self, host: &[u8]) -> Option<Bytes> {
        let name = host.strip_suffix(self.cluster().as_ref())?.strip_suffix(b".")?;
        (!name.is_empty()).then(|| Bytes::copy_from_slice(name))
    }

    /// Whether objects of a kind have such names. `api_version` is `group/version`.
    pub(crate) fn renames(&self, api_version: &str, kind: &str) -> bool {
        let Some((group, _)) = api_version.split_once('/') else { return false };
        // Few hosts have many kinds, and a pair of borrowed strings is not a key of the set.
        self.renamed.iter().any(|(known, name)| known == group && name == kind)
    }

    /// The object of the current request: its name on the host, and in the virtual cluster.
    pub(crate) fn about(&self) -> Option<&(Bytes, Bytes)> {
        self.about.as_ref()
    }
}

const _: () = assert!(MAX_NAME > 1 + crate::name::MAX_LABEL, "there is always room for a name");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Index;
    use proptest::prelude::*;

    fn mapping(cluster: &str) -> Mapping {
        Mapping::new(cluster.parse().unwrap(), Arc::new(Index::new()))
    }

    proptest! {
        #[test]
        fn a_name_comes_back_in_its_cluster_only(
            name in "[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?",
            (one, other) in ("[a-z]([-a-z0-9]{0,20}[a-z0-9])?", "[a-z]([-a-z0-9]{0,20}[a-z0-9])?"),
        ) {
            let host = mapping(&one).object(&name).unwrap();
            prop_assert!(host.len() <= MAX_NAME);
            prop_assert_eq!(mapping(&one).seen_object(host.as_bytes()), Some(Bytes::from(name)));
            prop_assert_eq!(mapping(&other).seen_object(host.as_bytes()).is_some(), one == other);
        }
    }

    #[test]
    fn some_names_are_nobodys() {
        let ke = mapping("ke");
        for foreign in ["a", "a.hz", "ke", ".ke", "a-ke", "a.ke.b", ""] {
            assert_eq!(ke.seen_object(foreign.as_bytes()), None, "{foreign}");
        }
        assert_eq!(ke.object(&"a".repeat(251)), Err(TooLong { room: 250 }));
        assert_eq!(ke.object(&"a".repeat(250)).unwrap().len(), MAX_NAME);
    }

    #[test]
    fn kinds_are_of_a_group() {
        let kinds = [("example.com".to_owned(), "Widget".to_owned())].into_iter().collect();
        let ke = mapping("ke").renaming(Arc::new(kinds));
        assert!(ke.renames("example.com/v1", "Widget") && ke.renames("example.com/v2beta1", "Widget"));
        assert!(!ke.renames("example.org/v1", "Widget") && !ke.renames("example.com/v1", "Other"));
        assert!(!ke.renames("v1", "Widget") && !ke.renames("", ""));
    }
}
