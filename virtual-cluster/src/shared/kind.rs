//! The shared kinds that virtual clusters may write, if the configuration allows it.
//!
//! Objects of other shared kinds act on nodes or on the network of the whole host, so they always belong to the
//! operator.

use std::fmt;
use std::str::FromStr;

use kube_wire::gvr::GroupResource;

/// A shared kind that virtual clusters may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In the group `apiextensions.k8s.io`.
    CustomResourceDefinition,
    /// In the group `resource.k8s.io`.
    DeviceClass,
    /// In the group `networking.k8s.io`.
    IngressClass,
    /// In the group `scheduling.k8s.io`.
    PriorityClass,
    /// In the group `node.k8s.io`.
    RuntimeClass,
    /// In the group `storage.k8s.io`.
    StorageClass,
    /// In the group `storage.k8s.io`.
    VolumeAttributesClass,
}

/// The text is not one of the kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "virtual clusters cannot write `{text}`; supported are {}, and resources of `customResources` with `objects: \
     shared`",
    Kind::ALL.map(|kind| kind.to_string()).join(", ")
)]
pub struct NotWritable {
    text: String,
}

// === impl Kind ===

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::CustomResourceDefinition,
        Self::DeviceClass,
        Self::IngressClass,
        Self::PriorityClass,
        Self::RuntimeClass,
        Self::StorageClass,
        Self::VolumeAttributesClass,
    ];

    /// The kind of a resource, if it is shared.
    pub fn of(resource: GroupResource<'_>) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.resource() == resource)
    }

    pub(crate) const fn resource(self) -> GroupResource<'static> {
        let (group, resource) = match self {
            Self::CustomResourceDefinition => ("apiextensions.k8s.io", "customresourcedefinitions"),
            Self::DeviceClass => ("resource.k8s.io", "deviceclasses"),
            Self::IngressClass => ("networking.k8s.io", "ingressclasses"),
            Self::PriorityClass => ("scheduling.k8s.io", "priorityclasses"),
            Self::RuntimeClass => ("node.k8s.io", "runtimeclasses"),
            Self::StorageClass => ("storage.k8s.io", "storageclasses"),
            Self::VolumeAttributesClass => ("storage.k8s.io", "volumeattributesclasses"),
        };
        GroupResource { group, resource }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupResource { group, resource } = self.resource();
        write!(f, "{resource}.{group}")
    }
}

impl FromStr for Kind {
    type Err = NotWritable;

    fn from_str(text: &str) -> Result<Self, NotWritable> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| NotWritable { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Class, class};

    #[test]
    fn writable_kinds_are_shared() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(Kind::of(kind.resource()), Some(kind));
            assert_eq!(class(kind.resource()), Class::Shared, "{kind}");
        }
        let error = "nodes".parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains("`nodes`") && error.contains("storageclasses.storage.k8s.io"), "{error}");
    }
}
