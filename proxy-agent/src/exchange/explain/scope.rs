//! Which built-in resources are namespaced.

use virtual_cluster::policy;

/// Whether a built-in resource is namespaced. `None` for other resources, because only the host knows that.
pub fn is_namespaced(group: &str, resource: &str) -> Option<bool> {
    let is_namespaced = !policy::is_known(kube_wire::gvr::GroupResource { group, resource });
    (rewrite::schema::kind_of(group, resource).is_some() || !is_namespaced).then_some(is_namespaced)
}
