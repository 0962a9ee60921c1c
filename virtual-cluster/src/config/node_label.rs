//! Labels that a node may change on itself.
//!
//! A kubelet writes its own Node object. The admission plugin NodeRestriction forbids it most labels of Kubernetes, and
//! allows all others: plugin/pkg/admission/noderestriction and kubelet's `pkg/apis/well_known_labels.go`.

/// Kubernetes' own labels that a kubelet sets.
const OF_KUBELETS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Prefixes of labels that a kubelet may set.
const PREFIXES_OF_KUBELETS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Whether a kubelet may set and remove this label of its own node.
pub(super) fn is_left_to_kubelets(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_below =
        |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_kubernetes = is_below("kubernetes.io") || is_below("k8s.io");
    !is_kubernetes || OF_KUBELETS.contains(&key) || PREFIXES_OF_KUBELETS.into_iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_can_set_only_some_labels_of_kubernetes() {
        for left in [
            "location",
            "example.com/zone",
            "apps.kubeedge.io/belonging-to",
            "notkubernetes.io/x",
            "kubernetes.io.example.com/x",
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
            "kubelet.kubernetes.io/x",
            "x.node.kubernetes.io/x",
        ] {
            assert!(is_left_to_kubelets(left), "{left}");
        }
        for kept in [
            "node-restriction.kubernetes.io/site",
            "example.com.node-restriction.kubernetes.io/site",
            "node-role.kubernetes.io/edge",
            "kubernetes.io/site",
            "topology.kubernetes.io/rack",
            "k8s.io/x",
            "x.k8s.io/x",
        ] {
            assert!(!is_left_to_kubelets(kept), "{kept}");
        }
    }
}
