//! Whose rights a change of an RBAC object can change.
//!
//! The names and namespaces of objects decide, because a watch that reads only metadata costs the least, and because they do
//! not change.

use kube_wire::request_info::ResourcePath;
use rewrite::facts::Facts;
use rewrite::{ClusterName, HostNamespace};
use virtual_cluster::own_rights::is_agents_role;
use virtual_cluster::provisioner::CANARY;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The prefix of the ClusterRoles of virtual clusters: `vc:<cluster>:<name>`.
const PREFIX: &str = "vc:";

/// The RBAC resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Roles,
    RoleBindings,
    ClusterRoles,
    ClusterRoleBindings,
}

/// Whose rights may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    Nobody,
    /// Those in this namespace of the host.
    Namespace(String),
    /// Those in all namespaces of a virtual cluster.
    Cluster(ClusterName),
    Everybody,
}

// === impl Resource ===

impl Resource {
    pub(super) const ALL: [Self; 4] = [Self::Roles, Self::RoleBindings, Self::ClusterRoles, Self::ClusterRoleBindings];

    /// All objects of the host.
    pub(super) fn path(self) -> String {
        let resource = match self {
            Self::Roles => "roles",
            Self::RoleBindings => "rolebindings",
            Self::ClusterRoles => "clusterroles",
            Self::ClusterRoleBindings => "clusterrolebindings",
        };
        ResourcePath::new(GROUP, "v1", resource).build()
    }

    /// Whom a change of this object concerns.
    pub(super) fn concern(self, object: &Facts<'_>) -> Concern {
        match self {
            // The agent replaces the canary in a root namespace after each of its writes. It grants nothing to anybody. In
            // other namespaces, clients can create a binding with this name.
            Self::RoleBindings if object.name == CANARY && is_root(&object.namespace) => Concern::Nobody,
            Self::Roles | Self::RoleBindings => Concern::Namespace(object.namespace.clone().into_owned()),
            Self::ClusterRoles => of_cluster_role(&object.name),
            // It may bind any user of a virtual cluster, or a group of which they are members.
            Self::ClusterRoleBindings => Concern::Everybody,
        }
    }
}

/// Clients cannot have namespaces with such names.
fn is_root(namespace: &str) -> bool {
    HostNamespace::new(namespace).is_ok_and(|namespace| namespace.is_root())
}

fn of_cluster_role(name: &str) -> Concern {
    let own = name.strip_prefix(PREFIX).and_then(|name| name.split_once(':'));
    match own.and_then(|(cluster, name)| Some((ClusterName::new(cluster).ok()?, name))) {
        Some((_, CANARY)) => Concern::Nobody,
        // Bindings of other virtual clusters cannot name it.
        Some((cluster, _)) => Concern::Cluster(cluster),
        // Virtual clusters cause changes of these roles, to which only agents are bound.
        None if is_agents_role(name) => Concern::Nobody,
        // All virtual clusters can bind roles of the host, and the host aggregates them.
        None => Concern::Everybody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_concerns_those_whom_it_can_grant_rights() {
        let of = |resource: Resource, namespace: &'static str, name: &'static str| {
            let facts = Facts { namespace: namespace.into(), name: name.into(), ..Facts::default() };
            resource.concern(&facts)
        };
        let in_namespace = |namespace: &str| Concern::Namespace(namespace.to_owned());
        let in_cluster = |name: &str| Concern::Cluster(ClusterName::new(name).unwrap());
        assert_eq!(of(Resource::Roles, "edge-ke", "a"), in_namespace("edge-ke"));
        assert_eq!(of(Resource::RoleBindings, "atoll-root-ke", "vc:hz:a"), in_namespace("atoll-root-ke"));
        assert_eq!(of(Resource::RoleBindings, "atoll-root-ke", "atoll:canary"), Concern::Nobody);
        assert_eq!(of(Resource::RoleBindings, "edge-ke", "atoll:canary"), in_namespace("edge-ke"));
        assert_eq!(of(Resource::RoleBindings, "edge-ke", "atoll:crb:a"), in_namespace("edge-ke"));
        for (name, concern) in [
            ("vc:ke:a", in_cluster("ke")),
            ("vc:ke:vc:hz:a", in_cluster("ke")),
            ("vc:ke:atoll:canary", Concern::Nobody),
            ("vc:ke:a:atoll:canary", in_cluster("ke")),
            ("vc:ke:", in_cluster("ke")),
            ("vc:KE:a", Concern::Everybody),
            ("vc:ke", Concern::Everybody),
            ("view", Concern::Everybody),
            ("atoll:custom:widgets.example.com", Concern::Nobody),
            ("atoll-proxy-agent-custom-resources", Concern::Nobody),
            ("atoll-proxy-agent", Concern::Everybody),
        ] {
            assert_eq!(of(Resource::ClusterRoles, "", name), concern, "{name}");
        }
        assert_eq!(of(Resource::ClusterRoleBindings, "", "vc:ke:a"), Concern::Everybody);
    }

    #[test]
    fn resources_have_paths() {
        assert_eq!(Resource::RoleBindings.path(), "/apis/rbac.authorization.k8s.io/v1/rolebindings");
    }
}
