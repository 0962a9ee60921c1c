//! Names with a meaning: those of Kubernetes, and those of the agent.

/// `Anonymous` of `k8s.io/apiserver/pkg/authentication/user/user.go`.
pub const ANONYMOUS: &str = "system:anonymous";

/// The name of the Role or RoleBinding in the dry run, in a root namespace, that shows whether a caller may grant certain
/// rights.
pub const ATTEMPT: &str = "atoll:attempt";

/// All authenticated users (`AllAuthenticated` of `k8s.io/apiserver/pkg/authentication/user/user.go`).
pub const AUTHENTICATED: &str = "system:authenticated";
/// All other users (`AllUnauthenticated`, ibidem).
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// All service accounts (`AllServiceAccountsGroup` of `pkg/authentication/serviceaccount/util.go`).
pub const ACCOUNTS: &str = "system:serviceaccounts";
/// The service accounts of one namespace (`ServiceAccountGroupPrefix`, ibidem).
pub const ACCOUNTS_OF: &str = "system:serviceaccounts:";

/// The group on the host whose members may attempt grants in a virtual cluster. No client is a member: names of clients'
/// groups have another prefix.
pub fn attempt_group(cluster: &rewrite::ClusterName) -> String {
    format!("{ATTEMPT}:{cluster}")
}
