//! Where ClusterRoles are on the host.

/// The path of all ClusterRoles.
pub const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
