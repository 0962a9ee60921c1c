//! The types of names in references, for all encodings.

use crate::program::Place;

/// The type of the name in a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Namespace,
    /// A user or group.
    Identity,
    Node,
    /// A ClusterRole.
    Role,
    /// A cluster-scoped custom object.
    Renamed,
    /// An object with the same name on the host.
    Other,
}

// === impl Named ===

impl Named {
    /// The field that determines the target of a reference.
    pub(super) fn decider(place: Place) -> &'static str {
        if place == Place::ResourceAttributes { "resource" } else { "kind" }
    }

    /// `says` tells whether that is the given word.
    pub(super) fn at(place: Place, says: impl Fn(&str) -> bool) -> Self {
        match place {
            // Even without a kind, as in `assignPod` in pkg/registry/core/pod.
            Place::BindingTarget => Self::Node,
            Place::BoundObject if says("Node") => Self::Node,
            Place::Subject if says("User") || says("Group") => Self::Identity,
            Place::Reference | Place::Claim | Place::EventObject if says("Namespace") => Self::Namespace,
            Place::ResourceAttributes if says("namespaces") => Self::Namespace,
            Place::ResourceAttributes if says("clusterroles") => Self::Role,
            Place::RoleRef if says("ClusterRole") => Self::Role,
            _ => Self::Other,
        }
    }
}
