//! The names of virtual clusters, and of namespaces on both sides.
//!
//! Virtual and host namespaces are both DNS labels, and the engine must never confuse them. So they have different types, and
//! only [`HostNamespace::derive`] and a [`Mapping`](crate::Mapping) convert one to the other.

mod digest;
mod keys;
mod label;
mod names;

pub use keys::{
    CLUSTER_LABEL, HIDDEN_PREFIX, LAST_APPLIED_ANNOTATION, LEFT_PREFIX, MANAGER_PREFIX, METADATA_NAME_LABEL,
    NAMESPACE_LABEL, NODE_PREFIX, OVERLAY_PREFIX, ROOT_LABEL, SHARED_LABEL, is_hidden, is_own_key,
};
pub use label::{MAX_LABEL, NotALabel, is_label};
pub use names::{ClusterName, HostNamespace, VirtualNamespace, endings, is_root};

#[cfg(test)]
mod tests;
