//! Keys of labels and annotations.

/// Labels and annotations with this prefix are Atoll's own.
pub const HIDDEN_PREFIX: &str = "atoll.dev/";
/// The label of a host namespace with the name of its virtual cluster.
pub const CLUSTER_LABEL: &str = "atoll.dev/virtual-cluster";
/// The label of a root namespace. Its value is the name of the virtual cluster.
pub const ROOT_LABEL: &str = "atoll.dev/root";
/// The label of a host namespace with its name in the virtual cluster.
pub const NAMESPACE_LABEL: &str = "atoll.dev/namespace";
/// The label that the API server sets on every Namespace: its name (`LabelMetadataName` in core/v1).
pub const METADATA_NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The annotation in which kubectl, and the API server for it, store the last applied configuration
/// (`LastAppliedConfigAnnotation` in core/v1).
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The label of a shared object that a virtual cluster created: only virtual clusters with an overlay see it.
pub const SHARED_LABEL: &str = "atoll.dev/shared";
/// The prefix of annotations of shared objects that are overlays: the labels and annotations of the virtual cluster whose name
/// follows.
pub const OVERLAY_PREFIX: &str = "overlay.atoll.dev/";
/// The prefix of annotations of shared objects that show that the virtual cluster whose name follows had an overlay.
pub const LEFT_PREFIX: &str = "left.atoll.dev/";
/// The prefix of field managers on the host for what a virtual cluster writes to a shared object: `atoll:CLUSTER:MANAGER`.
pub const MANAGER_PREFIX: &str = "atoll:";

/// The prefix of the labels with which the agent marks the nodes of a virtual cluster; the name of the virtual cluster follows. A
/// kubelet may not set labels of this domain (`NodeRestriction`).
pub const NODE_PREFIX: &str = "atoll.node-restriction.kubernetes.io/";

/// Whether clients never see a label or annotation with this key.
pub fn is_hidden(key: &str) -> bool {
    key.starts_with(HIDDEN_PREFIX) || key.starts_with(NODE_PREFIX)
}

/// Whether a key of a label or annotation is Atoll's own: in `atoll.dev` or a subdomain.
pub fn is_own_key(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == "atoll.dev" || domain.ends_with(".atoll.dev"))
}
