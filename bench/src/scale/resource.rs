//! The resources that informers watch.

use std::str::FromStr;

/// A resource of an API version, such as `v1/configmaps` or `apps/v1/deployments`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    group_version: String,
    name: String,
}

/// The text is not a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be VERSION/RESOURCE or GROUP/VERSION/RESOURCE, for example apps/v1/deployments")]
pub(super) struct InvalidResource;

/// About what Karmada and a cluster administrator's tools watch in a cluster.
pub(super) const DEFAULT: &str = "v1/configmaps,v1/pods,v1/nodes,v1/secrets,v1/services,apps/v1/deployments,\
    v1/namespaces,v1/serviceaccounts,apps/v1/replicasets,apps/v1/statefulsets,apps/v1/daemonsets,batch/v1/jobs,\
    batch/v1/cronjobs,networking.k8s.io/v1/ingresses,rbac.authorization.k8s.io/v1/roles,\
    rbac.authorization.k8s.io/v1/rolebindings,rbac.authorization.k8s.io/v1/clusterroles,\
    rbac.authorization.k8s.io/v1/clusterrolebindings,discovery.k8s.io/v1/endpointslices,\
    v1/persistentvolumeclaims,v1/persistentvolumes,policy/v1/poddisruptionbudgets,autoscaling/v2/horizontalpodautoscalers,\
    apiextensions.k8s.io/v1/customresourcedefinitions,networking.k8s.io/v1/networkpolicies,v1/events,v1/limitranges,\
    v1/resourcequotas,storage.k8s.io/v1/storageclasses,scheduling.k8s.io/v1/priorityclasses,\
    networking.k8s.io/v1/ingressclasses,apps/v1/controllerrevisions,coordination.k8s.io/v1/leases,\
    v1/replicationcontrollers,v1/podtemplates,v1/endpoints,storage.k8s.io/v1/csidrivers,storage.k8s.io/v1/csinodes,\
    storage.k8s.io/v1/volumeattachments,node.k8s.io/v1/runtimeclasses";

// === impl Resource ===

impl Resource {
    /// The path of its objects in all namespaces.
    pub(super) fn path(&self) -> String {
        let Self { group_version, name } = self;
        let prefix = if group_version.contains('/') { "apis" } else { "api" };
        format!("/{prefix}/{group_version}/{name}")
    }

    /// Whether informers of this resource receive the events that the benchmark writes.
    pub(super) fn has_events(&self) -> bool {
        self.group_version == "v1" && self.name == "configmaps"
    }
}

impl FromStr for Resource {
    type Err = InvalidResource;

    fn from_str(text: &str) -> Result<Self, InvalidResource> {
        let (group_version, name) = text.rsplit_once('/').ok_or(InvalidResource)?;
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
        };
        if group_version.split('/').count() > 2 || !group_version.split('/').all(plain) || !plain(name) {
            return Err(InvalidResource);
        }
        Ok(Self { group_version: group_version.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_resources_are_valid() {
        let all: Vec<Resource> = DEFAULT.split(',').map(|text| text.parse().unwrap()).collect();
        assert_eq!(all.len(), 40);
        assert_eq!(all[0].path(), "/api/v1/configmaps");
        assert_eq!(all[5].path(), "/apis/apps/v1/deployments");
        assert_eq!(all.iter().filter(|resource| resource.has_events()).count(), 1);
    }

    #[test]
    fn other_texts_are_invalid() {
        for text in ["", "configmaps", "/configmaps", "v1/", "a/v1/b/c", "v1/configmaps?x", "apps//deployments"] {
            assert_eq!(text.parse::<Resource>(), Err(InvalidResource), "{text}");
        }
    }
}
