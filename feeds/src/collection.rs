//! Resources of the host.

use virtual_cluster::namespaces::NOBODYS;

use crate::placement::Membership;

/// A resource of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The path of the objects in all namespaces: `/apis/apps/v1/deployments`.
    pub path: String,
    /// For example, `apps/v1`.
    pub api_version: String,
    /// For example, `Deployment`.
    pub kind: String,
    /// Whether Kubernetes defines it.
    pub is_built_in: bool,
    /// Whose its objects are.
    pub membership: Membership,
}

// === impl Collection ===

impl Collection {
    /// The path of the objects in one namespace.
    pub(crate) fn path_in(&self, namespace: &str) -> String {
        match self.path.rsplit_once('/') {
            Some((group, resource)) => format!("{group}/namespaces/{namespace}/{resource}"),
            None => self.path.clone(),
        }
    }

    /// A path, and a field selector, of a list without objects.
    pub(crate) fn without_objects(&self) -> (String, String) {
        match self.membership {
            Membership::Namespaced | Membership::NamespacedOrRoot => (self.path_in(NOBODYS), String::new()),
            Membership::Namespace | Membership::Everybody => (self.path.clone(), format!("metadata.name={NOBODYS}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_comes_before_the_resource() {
        for (path, expected) in [
            ("/api/v1/pods", "/api/v1/namespaces/a/pods"),
            ("/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/a/deployments"),
        ] {
            let (api_version, kind) = (String::new(), String::new());
            let collection = Collection {
                path: path.into(),
                api_version,
                kind,
                is_built_in: true,
                membership: Membership::Namespaced,
            };
            assert_eq!(collection.path_in("a"), expected);
        }
    }
}
