//! The configuration of shared objects.

use kube_wire::gvr::GroupResource;
use ops::config::Located;
use serde::Deserialize;

use super::Kind;

/// The shared objects that virtual clusters may write.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedObjects {
    /// Kinds, as `resource.group`.
    pub writable: Vec<Located<String>>,
    /// Restrictions on CustomResourceDefinitions of virtual clusters.
    pub custom_resource_definitions: CustomResourceDefinitions,
    /// Restrictions on StorageClasses of virtual clusters.
    pub storage_classes: StorageClasses,
}

/// Restrictions on CustomResourceDefinitions of virtual clusters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomResourceDefinitions {
    /// API groups that belong to the operator. Each includes its subdomains.
    pub reserved_groups: Vec<String>,
    /// Exceptions to `reserved_groups`. Each includes its subdomains.
    pub allowed_groups: Vec<Located<String>>,
}

/// Restrictions on StorageClasses of virtual clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClasses {
    /// The allowed values of `provisioner`.
    pub provisioners: Vec<String>,
    /// The allowed values in `mountOptions`.
    pub mount_options: Vec<String>,
}

// === impl SharedObjects ===

impl SharedObjects {
    /// Whether virtual clusters may write objects of this kind.
    pub fn lets_write(&self, resource: GroupResource<'_>) -> bool {
        let is_listed = |name: &str| name.split_once('.') == Some((resource.resource, resource.group));
        self.writable.iter().any(|writable| is_listed(writable))
    }

    /// Whether this is a write of such a kind, so that roles decide about it.
    pub fn let_do(&self, resource: GroupResource<'_>, subresource: &str, verb: &str) -> bool {
        let is_write = match subresource {
            "" => matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection"),
            "status" => {
                matches!(verb, "update" | "patch") && Kind::of(resource) == Some(Kind::CustomResourceDefinition)
            }
            _ => false,
        };
        is_write && self.lets_write(resource)
    }
}

impl Default for SharedObjects {
    fn default() -> Self {
        Self {
            writable: vec![Kind::CustomResourceDefinition.to_string().into()],
            custom_resource_definitions: CustomResourceDefinitions::default(),
            storage_classes: StorageClasses::default(),
        }
    }
}

// === impl CustomResourceDefinitions ===

impl CustomResourceDefinitions {
    /// Atoll's own API group. It is always reserved.
    pub const OWN_GROUP: &str = "atoll.dev";

    /// Whether virtual clusters may not create definitions in this API group.
    pub fn reserves(&self, group: &str) -> bool {
        let is_allowed = self.allowed_groups.iter().any(|allowed| is_within(group, allowed));
        let is_reserved = self.reserved_groups.iter().any(|reserved| is_within(group, reserved));
        is_within(group, Self::OWN_GROUP) || (is_reserved && !is_allowed)
    }
}

impl Default for CustomResourceDefinitions {
    fn default() -> Self {
        // The groups that kube-apiserver protects (`IsProtectedCommunityGroup` in apiextensions-apiserver's
        // `apihelpers`), those of the special interest groups, and those of KubeEdge, whose controllers run on most
        // hosts.
        let reserved = ["k8s.io", "kubernetes.io", "x-k8s.io", "kubeedge.io"];
        Self { reserved_groups: reserved.map(str::to_owned).into(), allowed_groups: Vec::new() }
    }
}

/// Whether an API group is `domain` or below it.
pub fn is_within(group: &str, domain: &str) -> bool {
    group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
