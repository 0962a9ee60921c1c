//! The table that says how each cluster-scoped resource is served.
//!
//! Namespaced resources need no entry: the host's RBAC decides in their namespace. Resources that are not in the table
//! cannot be written, because nothing may reach the host without being mapped, and their lists are empty. So an
//! administrator can list and watch every kind that discovery advertises, as clients that cache a whole cluster do.

use std::collections::HashMap;

use kube_wire::gvr::GroupResource;

/// How a cluster-scoped resource is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Namespaces: mapped by name. A list has those with the cluster's label.
    Namespaces,
    /// Nodes: those that the node selector matches; read-only.
    Nodes,
    /// PersistentVolumes: those that are claimed in the cluster's namespaces; read-only.
    Claimed,
    /// Those of the cluster's nodes; read-only.
    OfNodes,
    /// IPAddresses: those of the cluster's Services; read-only.
    Addresses,
    /// APIServices: those of kube-apiserver's own groups; read-only.
    LocalApis,
    /// FlowSchemas and PriorityLevelConfigurations: those that Kubernetes itself maintains; read-only.
    Autoupdated,
    /// ClusterRoles: those of the cluster, which have another name on the host, and those that every cluster has.
    Roles,
    /// ClusterRoleBindings: RoleBindings in the root namespace.
    Bindings,
    /// The same for every virtual cluster; read-only.
    Shared,
    /// Reviews: sent to the host, with names mapped in both directions.
    Review,
    /// Always empty, regardless of the host, with the reason why writes are refused.
    Empty(&'static str),
}

/// How a custom resource is served if the configuration lists it, or if it is cluster-scoped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Custom {
    /// All clusters see the host's objects; none can write them.
    Read,
    /// Each virtual cluster has its own objects, which have other names on the host.
    Renamed,
    /// All clusters see the host's objects, and share the objects that they create, as for PriorityClasses.
    Shared,
    /// The resource is not served.
    Hidden,
}

/// How the custom resources are served that the configuration lists.
#[derive(Clone, Debug, Default)]
pub struct Customs {
    /// By `plural.group`.
    by_name: HashMap<String, Custom>,
}

/// The refusal if the agent lacks a right that the client has.
pub const NOT_GRANTED: &str = "the operator of the host cluster has not granted the proxy-agent the right to write it";

/// The refusal of a write to a resource that the configuration hides.
pub const HIDDEN: &str = "the operator of the host cluster does not offer this resource to virtual clusters";

/// The refusal for resources that are not in the table.
pub const UNKNOWN: &str = "this cluster-scoped resource is not served by virtual clusters";

// === impl Customs ===

impl Customs {
    /// The entries of the configuration, by `plural.group`. Our own kinds are hidden, whatever the configuration says: who writes
    /// a VirtualCluster decides about nodes of the host and about the namespaces of other virtual clusters.
    pub fn new(served: impl IntoIterator<Item = (String, Custom)>) -> Self {
        Self { by_name: served.into_iter().collect() }
    }

    /// How the resource of the definition `name` is served. If the configuration does not list it, its owner decides:
    /// objects of kinds that virtual clusters created belong to them, and objects of the operator's kinds can act on
    /// the whole host.
    pub fn of(&self, name: &str, is_of_clusters: bool) -> Custom {
        if is_own(name) {
            return Custom::Hidden;
        }
        let otherwise = if is_of_clusters { Custom::Renamed } else { Custom::Hidden };
        self.by_name.get(name).copied().unwrap_or(otherwise)
    }

    /// Whether the configuration forbids clients to write the resource, which may be namespaced or cluster-scoped.
    pub fn is_reserved(&self, name: &str) -> bool {
        is_own(name) || self.by_name.get(name).is_some_and(|custom| !custom.is_written())
    }

    /// Whether the configuration lists it.
    pub fn lists(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

// === impl Custom ===

impl Custom {
    /// Whether virtual clusters may write such objects.
    pub fn is_written(self) -> bool {
        matches!(self, Self::Renamed | Self::Shared)
    }
}

/// Whether the definition `name`, as `plural.group`, is one of ours.
pub fn is_own(name: &str) -> bool {
    name.ends_with(".atoll.dev")
}

/// The table.
pub fn class(resource: GroupResource<'_>) -> Class {
    match (resource.group, resource.resource) {
        ("", "namespaces") => Class::Namespaces,
        ("", "nodes") => Class::Nodes,
        ("", "persistentvolumes") => Class::Claimed,
        ("metrics.k8s.io", "nodes")
        | ("resource.k8s.io", "resourceslices")
        | ("storage.k8s.io", "csinodes" | "volumeattachments") => Class::OfNodes,
        ("networking.k8s.io", "ipaddresses") => Class::Addresses,
        ("apiregistration.k8s.io", "apiservices") => Class::LocalApis,
        ("flowcontrol.apiserver.k8s.io", "flowschemas" | "prioritylevelconfigurations") => Class::Autoupdated,
        ("rbac.authorization.k8s.io", "clusterroles") => Class::Roles,
        ("rbac.authorization.k8s.io", "clusterrolebindings") => Class::Bindings,
        ("", "componentstatuses")
        | ("apiextensions.k8s.io", "customresourcedefinitions")
        | ("certificates.k8s.io", "clustertrustbundles")
        | ("networking.k8s.io", "ingressclasses" | "servicecidrs")
        | ("node.k8s.io", "runtimeclasses")
        | ("resource.k8s.io", "deviceclasses")
        | ("scheduling.k8s.io", "priorityclasses")
        | ("storage.k8s.io", "storageclasses" | "csidrivers" | "volumeattributesclasses") => Class::Shared,
        ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews")
        | ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "subjectaccessreviews") => {
            Class::Review
        }
        ("admissionregistration.k8s.io", _) => {
            Class::Empty("webhooks and admission policies act on the whole host cluster")
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            Class::Empty("only the operator of the host cluster signs certificates for it")
        }
        ("resource.k8s.io", "devicetaintrules") => Class::Empty("device taints act on the whole host cluster"),
        ("resource.k8s.io", "resourcepoolstatusrequests") => {
            Class::Empty("device pools belong to the whole host cluster")
        }
        ("internal.apiserver.k8s.io", "storageversions") | ("storagemigration.k8s.io", "storageversionmigrations") => {
            Class::Empty("the operator of the host cluster decides how objects are stored")
        }
        _ => Class::Empty(UNKNOWN),
    }
}

/// Whether the table has an entry for this resource, so that it is cluster-scoped.
pub fn is_known(resource: GroupResource<'_>) -> bool {
    class(resource) != Class::Empty(UNKNOWN)
}

/// Why a write to a resource that can be read is refused.
pub fn read_only(class: Class) -> &'static str {
    match class {
        Class::Nodes => "nodes belong to the operator of the host cluster",
        Class::Claimed => {
            "persistent volumes belong to the operator of the host cluster; a PersistentVolumeClaim gets one from its \
             storage class"
        }
        Class::OfNodes => "it belongs to a node, and nodes belong to the operator of the host cluster",
        Class::Addresses => {
            "the host cluster allocates the addresses of Services; to request one, set spec.clusterIPs of the Service"
        }
        Class::LocalApis => "API services belong to the operator of the host cluster",
        Class::Autoupdated => "priorities of requests belong to the operator of the host cluster",
        Class::Empty(why) => why,
        _ => "it is shared by all virtual clusters of the host, whose operator can change it",
    }
}

/// Why this is refused regardless of roles. Reviews use it, so that they do not allow what would be refused later.
/// `None` if roles decide, or if only the host knows whether the resource is namespaced.
pub fn withheld(resource: GroupResource<'_>, subresource: &str, verb: &str) -> Option<&'static str> {
    let reads = matches!(verb, "get" | "list" | "watch") && matches!(subresource, "" | "status");
    let is_known = reads || matches!(verb, "get" | "create" | "update" | "patch" | "delete" | "deletecollection");
    match class(resource) {
        _ if !is_known => None,
        Class::Empty(UNKNOWN) | Class::Namespaces | Class::Roles | Class::Bindings | Class::Review => None,
        _ if reads => None,
        class => Some(read_only(class)),
    }
}

/// The same for a cluster-scoped custom resource.
pub fn withheld_custom(custom: Custom, verb: &str) -> Option<&'static str> {
    let is_read = matches!(verb, "get" | "list" | "watch");
    let is_known = is_read || matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
    match custom {
        _ if is_read || !is_known => None,
        Custom::Hidden => Some(HIDDEN),
        // `sharedObjects` in the configuration says which shared kinds may be written.
        Custom::Read | Custom::Shared => Some(read_only(Class::Shared)),
        Custom::Renamed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_kinds_are_hidden_unless_the_configuration_says_otherwise() {
        let customs = Customs::new([("widgets.example.com".to_owned(), Custom::Read)]);
        for is_of_clusters in [true, false] {
            assert_eq!(customs.of("widgets.example.com", is_of_clusters), Custom::Read);
        }
        assert_eq!(customs.of("widgets.example.org", false), Custom::Hidden);
        assert_eq!(customs.of("widgets.example.org", true), Custom::Renamed);
    }

    #[test]
    fn our_own_kinds_are_always_hidden() {
        let name = "virtualclusters.atoll.dev";
        for custom in [Custom::Read, Custom::Renamed, Custom::Shared] {
            let customs = Customs::new([(name.to_owned(), custom)]);
            assert_eq!(customs.of(name, true), Custom::Hidden);
            assert!(customs.is_reserved(name));
        }
        assert_eq!(Customs::default().of("widgets.myatoll.dev", true), Custom::Renamed);
    }

    #[test]
    fn reviews_do_not_allow_refused_requests() {
        let withheld = |group, resource, subresource, verb| {
            withheld(GroupResource { group, resource }, subresource, verb).is_some()
        };
        for (resource, subresource, verb, expected) in [
            ("nodes", "", "get", false),
            ("nodes", "status", "get", false),
            ("nodes", "", "delete", true),
            ("nodes", "proxy", "get", true),
            ("nodes", "status", "patch", true),
            ("nodes", "", "*", false),
            ("namespaces", "", "create", false),
            ("pods", "", "delete", false),
            ("*", "", "delete", false),
        ] {
            assert_eq!(withheld("", resource, subresource, verb), expected, "{verb} {resource}/{subresource}");
        }
        assert!(withheld("", "persistentvolumes", "", "create"));
        assert!(!withheld("", "persistentvolumes", "", "list"));
        for (group, resource) in [
            ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
            ("apiregistration.k8s.io", "apiservices"),
            ("certificates.k8s.io", "certificatesigningrequests"),
            ("flowcontrol.apiserver.k8s.io", "flowschemas"),
            ("networking.k8s.io", "ipaddresses"),
        ] {
            assert!(
                !withheld(group, resource, "", "list") && !withheld(group, resource, "status", "get"),
                "{resource}"
            );
            assert!(
                withheld(group, resource, "", "create") && withheld(group, resource, "status", "patch"),
                "{resource}"
            );
        }
        assert!(withheld("certificates.k8s.io", "certificatesigningrequests", "approval", "update"));
        assert!(!withheld("certificates.k8s.io", "podcertificaterequests", "", "create"));
        assert!(!withheld("example.com", "widgets", "", "create"));
    }
}
