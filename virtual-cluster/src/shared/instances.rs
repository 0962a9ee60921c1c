//! The custom resources of a definition, and whether all of them belong to virtual clusters.

use std::collections::HashSet;

use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::{ClusterName, HostNamespace, VirtualNamespace};
use serde_json::Value;

use super::HostObject;
use crate::namespaces;
use host_client::api::HostApi;
use host_client::api::{ApiError, Partial};

/// The paths of the instances of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instances {
    /// `/apis/GROUP/VERSION`
    base: String,
    plural: String,
    /// Whether they are namespaced.
    pub is_namespaced: bool,
}

// === impl Instances ===

impl Instances {
    /// `None` if no version of them is served, so that no path exists.
    pub fn of(definition: &HostObject) -> Option<Self> {
        let spec = &definition.value()["spec"];
        let mut versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.find(|version| version["served"] == true)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            base: format!("/apis/{}/{}", text(&spec["group"]), text(&served["name"])),
            plural: text(&spec["names"]["plural"]),
            is_namespaced: spec["scope"] == "Namespaced",
        })
    }

    /// The path of all instances.
    pub fn path(&self) -> String {
        format!("{}/{}", self.base, self.plural)
    }

    /// Their API group, version and plural name.
    pub(crate) fn resource(&self) -> Option<(&str, &str, &str)> {
        let (group, version) = self.base.strip_prefix("/apis/")?.split_once('/')?;
        Some((group, version, &self.plural))
    }

    /// The path of the instances in a namespace of the host.
    pub fn path_in(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.base, self.plural)
    }

    /// Whether the operator has created instances: in a namespace of no virtual cluster or, if they are cluster-scoped,
    /// without the label of a virtual cluster. Instances of clusters that do not have the definition do not count: a
    /// token of such a cluster can create one directly at the host, and one can be created while the cluster leaves the
    /// definition. Neither may take the definition away from the clusters that have it.
    pub async fn any_outside(&self, api: &impl HostApi, definition: &HostObject) -> Result<bool, ApiError> {
        let found = if definition.attached().owners().all(|owner| ClusterName::new(owner).is_err()) {
            api.any(&self.path(), "", |_: Partial| true).await
        } else if self.is_namespaced {
            let of_clusters = namespaces_of(api, CLUSTER_LABEL).await?;
            let is_outside = |instance: Partial| !of_clusters.contains(&instance.metadata.namespace);
            api.any(&self.path(), "", is_outside).await
        } else {
            api.any(&self.path(), &format!("!{CLUSTER_LABEL}"), |_: Partial| true).await
        };
        match found {
            // The definition is not in force, so there are no instances.
            Err(error) if error.is_not_found() => Ok(false),
            found => found,
        }
    }
}

/// The host names of namespaces whose label and name agree on their virtual cluster.
async fn namespaces_of(api: &impl HostApi, labels: &str) -> Result<HashSet<String>, ApiError> {
    let mut own = HashSet::new();
    api.each(namespaces::PATH, labels, |Partial { metadata }| {
        let label = |key: &str| metadata.labels.get(key).map(String::as_str);
        let cluster = label(CLUSTER_LABEL).and_then(|cluster| ClusterName::new(cluster).ok());
        let name = label(NAMESPACE_LABEL).and_then(|name| VirtualNamespace::new(name).ok());
        if let (Some(cluster), Some(name)) = (cluster, name)
            && metadata.name == HostNamespace::derive(&name, &cluster).as_str()
        {
            own.insert(metadata.name);
        }
    })
    .await?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provisioner::testing::FakeHost;

    fn definition(scope: &str, owners: &[&str]) -> HostObject {
        let owners = owners.iter().map(|owner| (format!("overlay.atoll.dev/{owner}"), json!("{}")));
        let annotations: serde_json::Map<_, _> = owners.collect();
        let versions = json!([{"name": "v1alpha1", "served": false}, {"name": "v1", "served": true}]);
        HostObject::new(json!({
            "metadata": {"name": "gears.example.com", "annotations": annotations},
            "spec": {"group": "example.com", "names": {"plural": "gears"}, "scope": scope, "versions": versions},
        }))
    }

    async fn is_any_outside(host: &FakeHost, definition: &HostObject) -> bool {
        Instances::of(definition).unwrap().any_outside(host, definition).await.unwrap()
    }

    #[tokio::test]
    async fn instances_in_namespaces_without_an_owner_belong_to_the_operator() {
        let host = FakeHost::new();
        let definition = definition("Namespaced", &["ke"]);
        for (name, cluster) in [("a-ke", "ke"), ("a-hz", "hz"), ("forged", "ke")] {
            let labels = json!({CLUSTER_LABEL: cluster, NAMESPACE_LABEL: "a"});
            host.put(&format!("/api/v1/namespaces/{name}"), json!({"metadata": {"name": name, "labels": labels}}));
        }
        let put = |namespace: &str| {
            let object = json!({"metadata": {"name": "x", "namespace": namespace}});
            host.put(&format!("/apis/example.com/v1/gears/{namespace}"), object);
        };
        put("a-ke");
        put("a-hz");
        assert!(!is_any_outside(&host, &definition).await);
        for outside in ["forged", "default"] {
            put(outside);
            assert!(is_any_outside(&host, &definition).await, "{outside}");
            host.remove(&format!("/apis/example.com/v1/gears/{outside}"));
        }
    }

    #[tokio::test]
    async fn without_the_label_of_a_cluster_they_are_outside() {
        let host = FakeHost::new();
        let put = |name: &str, labels: Value| {
            host.put(
                &format!("/apis/example.com/v1/gears/{name}"),
                json!({"metadata": {"name": name, "labels": labels}}),
            );
        };
        put("x.ke", json!({CLUSTER_LABEL: "ke"}));
        assert!(!is_any_outside(&host, &definition("Cluster", &["ke", "hz"])).await);
        // It may be about to be deleted.
        assert!(!is_any_outside(&host, &definition("Cluster", &["hz"])).await);
        assert!(is_any_outside(&host, &definition("Cluster", &[])).await);
        put("plain", json!({}));
        assert!(is_any_outside(&host, &definition("Cluster", &["ke", "hz"])).await);
    }

    #[test]
    fn instances_that_are_not_served_have_no_path() {
        let mut unserved = definition("Cluster", &[]).value().clone();
        unserved["spec"]["versions"] = json!([{"name": "v1", "served": false}]);
        assert_eq!(Instances::of(&HostObject::new(unserved)), None);
        let instances = Instances::of(&definition("Namespaced", &[])).unwrap();
        assert_eq!(instances.path_in("a"), "/apis/example.com/v1/namespaces/a/gears");
    }
}
