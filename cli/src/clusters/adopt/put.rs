//! Creates one object of an export.

use anyhow::{Context as _, bail, ensure};
use host_client::api::{Api, ApiError, PatchKind};
use kube_wire::status::Reason;
use rewrite::ClusterName;
use rewrite::name::{CLUSTER_LABEL, MANAGER_PREFIX, OVERLAY_PREFIX, ROOT_LABEL, SHARED_LABEL};
use serde_json::{Value, json};
use virtual_cluster::namespaces::IDENTITY;

use crate::clusters::kinds::Resource;

/// The field manager of restored objects that belong to the virtual cluster alone.
const MANAGER: &str = "atoll-clusters";

/// What has happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Created,
    /// The host has it already.
    Present,
    /// The host has it, and it has the labels and annotations of the virtual cluster now.
    Joined,
}

/// Creates an object, unless the host has one of this name.
pub(super) async fn put(api: &Api, cluster: &ClusterName, resource: &Resource, object: &Value) -> anyhow::Result<Done> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let namespace = metadata["namespace"].as_str().filter(|_| resource.is_namespaced);
    let overlay =
        metadata["annotations"][format!("{OVERLAY_PREFIX}{cluster}")].as_str().filter(|_| namespace.is_none());
    if overlay.is_some() && metadata["labels"][SHARED_LABEL].is_null() {
        // The operator's object. The virtual cluster has only labels and annotations on it.
        return join(api, cluster, resource, object).await;
    }
    let manager = match overlay {
        // Any other manager would make the object the operator's.
        Some(_) => format!("{MANAGER_PREFIX}{cluster}:{MANAGER}"),
        None => MANAGER.to_owned(),
    };
    let collection = format!("{}?fieldManager={manager}", resource.path(namespace)?);
    let path = resource.path_of(namespace, name)?;
    let created = match api.create(&collection, object).await {
        // The port or the address belongs to another Service of this host.
        Err(error) if is_taken_port(&error) && object["kind"] == "Service" => {
            api.create(&collection, &without_ports(object)).await
        }
        created => created,
    };
    match created {
        Ok(_) => Ok(Done::Created),
        Err(error) if is_there(&error) && object["kind"] == "Namespace" => merge_namespace(api, &path, object).await,
        Err(error) if is_there(&error) && overlay.is_some() => join(api, cluster, resource, object).await,
        Err(error) if is_there(&error) => Ok(Done::Present),
        Err(error) => Err(error.into()),
    }
}

/// Adds the overlay of the virtual cluster to an object that the host has.
async fn join(api: &Api, cluster: &ClusterName, resource: &Resource, object: &Value) -> anyhow::Result<Done> {
    let path = resource.path_of(None, object["metadata"]["name"].as_str().unwrap_or_default())?;
    let key = format!("{OVERLAY_PREFIX}{cluster}");
    let found = match api.get(&path).await {
        Err(error) if error.is_not_found() => {
            bail!("it belonged to the operator of the former host; create it, and run this command again")
        }
        found => found?,
    };
    if !found["metadata"]["annotations"][&key].is_null() {
        return Ok(Done::Present);
    }
    let overlay = &object["metadata"]["annotations"][&key];
    let patch = json!({"metadata": {"annotations": {key: overlay}}});
    api.patch(&format!("{path}?fieldManager={MANAGER_PREFIX}{cluster}:{MANAGER}"), PatchKind::Merge, &patch).await?;
    Ok(Done::Joined)
}

/// The agent may have created the namespace already. The root namespace gets the identity of the virtual cluster.
async fn merge_namespace(api: &Api, path: &str, object: &Value) -> anyhow::Result<Done> {
    let found = api.get(path).await.context("cannot read it")?;
    for label in [CLUSTER_LABEL, ROOT_LABEL] {
        let (wanted, is) = (&object["metadata"]["labels"][label], &found["metadata"]["labels"][label]);
        ensure!(wanted == is, "the host has a namespace of this name that does not belong to this virtual cluster");
    }
    ensure!(found["metadata"]["deletionTimestamp"].is_null(), "the host is deleting the namespace of this name");
    let identity = &object["metadata"]["annotations"][IDENTITY];
    if identity.is_null() || found["metadata"]["annotations"][IDENTITY] == *identity {
        return Ok(Done::Present);
    }
    let patch = json!({"metadata": {"annotations": {IDENTITY: identity}}});
    api.patch(path, PatchKind::Merge, &patch).await?;
    Ok(Done::Joined)
}

fn is_there(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.reason == Reason::AlreadyExists)
}

/// `provided port is already allocated` (`portallocator` in pkg/registry/core/service).
fn is_taken_port(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.code == 422 && status.message.contains("already allocated"))
}

fn without_ports(service: &Value) -> Value {
    let mut service = service.clone();
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
    service
}

/// Whether the host does not have the object yet.
pub(super) async fn is_missing(api: &Api, resource: &Resource, object: &Value) -> anyhow::Result<bool> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().filter(|_| resource.is_namespaced);
    match api.get(&resource.path_of(namespace, metadata["name"].as_str().unwrap_or_default())?).await {
        Err(error) if error.is_not_found() => Ok(true),
        found => Ok(found.map(|_| false)?),
    }
}
