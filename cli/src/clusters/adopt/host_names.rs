//! Names of namespaces that belong to the host.
//!
//! Namespace `kube` of a virtual cluster `system` would be the host's `kube-system`.

use rewrite::{HostNamespace, VirtualNamespace};

/// Those of Kubernetes (`initialNamespaces` in kube-apiserver), and the one of Atoll in `configs/kubernetes`.
const OF_HOST: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "atoll-system"];
/// Kubernetes reserves names with this prefix.
const RESERVED: &str = "kube-";

/// Whether a host namespace never becomes namespace `name` of a virtual cluster.
pub(super) fn is_of_host(host: &HostNamespace, name: &VirtualNamespace) -> bool {
    let is_reserved = host.as_str().starts_with(RESERVED) && !name.as_str().starts_with(RESERVED);
    OF_HOST.contains(&host.as_str()) || is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_of_the_host_stay_its_own() {
        for (host, name, expected) in [
            ("kube-system", "kube", true),
            ("kube-node-lease", "kube-node", true),
            ("atoll-system", "atoll", true),
            ("kube-flannel", "kube", true),
            ("kube-system-ke", "kube-system", false),
            ("kube-node-lease-ke", "kube-node-lease", false),
            ("shop-ke", "shop", false),
        ] {
            assert_eq!(is_of_host(&host.parse().unwrap(), &name.parse().unwrap()), expected, "{host}");
        }
    }
}
