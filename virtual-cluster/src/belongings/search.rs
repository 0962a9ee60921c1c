//! Finds them, by labels, annotations and names.

use host_client::api::{ApiError, HostApi, Selection};
use kube_wire::gvr::GroupResource;
use rewrite::ClusterName;
use rewrite::name::{CLUSTER_LABEL, NODE_PREFIX};
use serde_json::Value;

use super::collection::Collection;
use super::found::{Found, Hold, Listed, Metadata, holders};
use crate::policy;
use crate::provisioner::flow_schema_of;
use crate::shared::{DEFINITIONS, HostObject, Instances, Kind};

/// Passes all such objects of the host to `see`, of all virtual clusters. The custom objects of a definition come before it. Lists
/// are read page by page.
pub async fn search(api: &impl HostApi, see: impl FnMut(Found) + Send) -> Result<(), ApiError> {
    let mut search = Search { api, see };
    search.cluster_roles().await?;
    search.flow_schemas().await?;
    search.nodes().await?;
    for kind in Kind::ALL {
        if kind != Kind::CustomResourceDefinition {
            search.shared(kind).await?;
        }
    }
    search.definitions().await
}

struct Search<'a, A, F> {
    api: &'a A,
    see: F,
}

// === impl Search ===

impl<A: HostApi, F: FnMut(Found) + Send> Search<'_, A, F> {
    async fn cluster_roles(&mut self) -> Result<(), ApiError> {
        let roles = Collection::new("rbac.authorization.k8s.io", "v1", "clusterroles");
        let see = &mut self.see;
        each(self.api, &roles.path(), |Listed { metadata }| {
            // `vc:CLUSTER:NAME`. Canaries have no label of the virtual cluster.
            let owner = metadata.name.strip_prefix("vc:").and_then(|rest| rest.split_once(':'));
            if let Some(cluster) = owner.and_then(|(cluster, _)| ClusterName::new(cluster).ok()) {
                whole(see, &roles, cluster, metadata);
            }
        })
        .await
    }

    async fn flow_schemas(&mut self) -> Result<(), ApiError> {
        let resource = GroupResource { group: "flowcontrol.apiserver.k8s.io", resource: "flowschemas" };
        let Some(schemas) = Collection::preferred(self.api, resource).await? else { return Ok(()) };
        let (path, selection) = (schemas.path(), Selection::default().metadata());
        let mut pages = self.api.pages(&path, &selection);
        while let Some(page) = pages.next::<Value>().await? {
            for schema in page {
                if let Some(cluster) = flow_schema_of(&schema) {
                    let Listed { metadata } = serde_json::from_value(schema).map_err(ApiError::Json)?;
                    whole(&mut self.see, &schemas, cluster, metadata);
                }
            }
        }
        Ok(())
    }

    async fn nodes(&mut self) -> Result<(), ApiError> {
        let (nodes, see) = (Collection::new("", "v1", "nodes"), &mut self.see);
        each(self.api, &nodes.path(), |Listed { metadata }| {
            let Some(path) = nodes.path_of(&metadata.name) else { return };
            let marks = metadata.labels.keys().filter_map(|key| ClusterName::new(key.strip_prefix(NODE_PREFIX)?).ok());
            for cluster in marks {
                let (name, uid) = (metadata.name.clone(), metadata.uid.clone());
                see(Found { cluster, resource: nodes.name(), name, uid, path: path.clone(), hold: Hold::Label });
            }
        })
        .await
    }

    async fn shared(&mut self, kind: Kind) -> Result<(), ApiError> {
        let Some(objects) = Collection::preferred(self.api, kind.resource()).await? else { return Ok(()) };
        let see = &mut self.see;
        each(self.api, &objects.path(), |object| parts(see, &objects, &object)).await
    }

    /// Definitions, and the cluster-scoped custom objects of each.
    async fn definitions(&mut self) -> Result<(), ApiError> {
        let everything = Selection::default();
        let definitions = Collection::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let mut pages = self.api.pages(DEFINITIONS, &everything);
        loop {
            let page = match pages.next::<Value>().await {
                // A host without definitions.
                Err(error) if error.is_not_found() => return Ok(()),
                page => page?,
            };
            let Some(page) = page else { return Ok(()) };
            for definition in page {
                let object = serde_json::from_value(definition.clone()).map_err(ApiError::Json)?;
                let definition = HostObject::new(definition);
                if let Some(instances) = Instances::of(&definition)
                    && let Some((group, version, plural)) = instances.resource()
                    && !instances.is_namespaced
                    && !policy::is_own(definition.text("name"))
                {
                    self.customs(&Collection::new(group, version, plural)).await?;
                }
                parts(&mut self.see, &definitions, &object);
            }
        }
    }

    async fn customs(&mut self, objects: &Collection) -> Result<(), ApiError> {
        let (see, path) = (&mut self.see, objects.path());
        let listed = each(self.api, &path, |object| match owner(&object.metadata) {
            Some(cluster) => whole(see, objects, cluster, object.metadata),
            None => parts(see, objects, &object),
        });
        match listed.await {
            // The definition is not in force.
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }
}

/// Passes the metadata of each object in a list to `see`.
async fn each(api: &impl HostApi, path: &str, mut see: impl FnMut(Listed) + Send) -> Result<(), ApiError> {
    let all = api.any(path, "", |object| {
        see(object);
        false
    });
    all.await.map(drop)
}

/// The virtual cluster of a custom object. The label alone proves nothing: the host name must also be one that the agent derives,
/// `NAME.CLUSTER`.
fn owner(metadata: &Metadata) -> Option<ClusterName> {
    let (name, cluster) = metadata.name.rsplit_once('.')?;
    let is_labelled = metadata.labels.get(CLUSTER_LABEL).is_some_and(|label| label == cluster);
    (is_labelled && !name.is_empty()).then(|| ClusterName::new(cluster).ok())?
}

/// An object that belongs to one virtual cluster.
fn whole(see: &mut impl FnMut(Found), collection: &Collection, cluster: ClusterName, metadata: Metadata) {
    if let Some(path) = collection.path_of(&metadata.name) {
        let Metadata { name, uid, .. } = metadata;
        see(Found { cluster, resource: collection.name(), name, uid, path, hold: Hold::Whole });
    }
}

/// A shared object, once for each virtual cluster that it names.
fn parts(see: &mut impl FnMut(Found), collection: &Collection, object: &Listed) {
    let Some(path) = collection.path_of(&object.metadata.name) else { return };
    for (cluster, hold) in holders(&object.metadata.annotations) {
        let (name, uid) = (object.metadata.name.clone(), object.metadata.uid.clone());
        see(Found { cluster, resource: collection.name(), name, uid, path: path.clone(), hold });
    }
}

#[cfg(test)]
mod tests;
