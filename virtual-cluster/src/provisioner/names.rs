//! The names of Atoll's objects on the host: labels, the finalizer, the prefix of mirrors, and the namespaces that every
//! virtual cluster has.

pub use rewrite::name::ROOT_LABEL;

/// The label of mirrors. The agent excludes it from lists and deletions by clients.
pub const MIRROR_LABEL: &str = "atoll.dev/mirror";
/// The finalizer of mirrors. With it, they outlive everything else in a namespace that is being deleted.
pub const MIRROR_FINALIZER: &str = "atoll.dev/mirror";
/// The label of objects that clients see but cannot change.
pub const PROTECTED_LABEL: &str = "atoll.dev/protected";
/// The label of objects in a root namespace that clients do not see.
pub const INTERNAL_LABEL: &str = "atoll.dev/internal";
/// The prefix of a mirror's name, before the name of the binding.
pub const MIRROR_PREFIX: &str = "atoll:crb:";
/// The binding of a cluster's administrators (`cluster-admin` in plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
pub const CLUSTER_ADMIN: &str = "cluster-admin";
/// The namespaces that every cluster has: three of the API server's own (`systemnamespaces` in
/// pkg/controlplane/controller) and `default`.
pub const INITIAL_NAMESPACES: [&str; 4] = ["kube-system", "default", "kube-public", "kube-node-lease"];
