//! Creates one object of an export.

use anyhow::{Context as _, bail};
use host_client::api::{Api, ApiError, PatchKind};
use kube_wire::gvr::GroupResource;
use kube_wire::status::Reason;
use rewrite::ClusterName;
use rewrite::name::{MANAGER_PREFIX, OVERLAY_PREFIX, SHARED_LABEL};
use serde_json::{Value, json};
use virtual_cluster::namespaces::IDENTITY;
use virtual_cluster::policy::{Class, class};

use super::{namespace, objection};
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
    /// A workload that waits for the agent.
    Waiting,
    /// The declaration of the virtual cluster, which the user has not asked for.
    Undeclared,
}

/// How an object gets to the host.
enum Way<'a> {
    /// A Namespace.
    Namespace,
    /// An object of the virtual cluster alone.
    Own,
    /// A shared object. The virtual cluster has this overlay on it.
    Shared { overlay: &'a str },
    /// A shared object that must be on the host already, and why.
    Join { overlay: &'a str, why: String },
}

// === impl Way ===

impl<'a> Way<'a> {
    fn of(cluster: &ClusterName, resource: &Resource, object: &'a Value) -> Self {
        let class = class(GroupResource { group: &resource.group, resource: &resource.name });
        if class == Class::Namespaces {
            return Self::Namespace;
        }
        let metadata = &object["metadata"];
        let overlay = metadata["annotations"][format!("{OVERLAY_PREFIX}{cluster}")].as_str();
        let Some(overlay) = overlay.filter(|_| !resource.is_namespaced && class != Class::Roles) else {
            return Self::Own;
        };
        if metadata["labels"][SHARED_LABEL].is_null() {
            // The virtual cluster has only labels and annotations on it.
            return Self::Join { overlay, why: "it belonged to the operator of the former host".to_owned() };
        }
        match objection::to_shared(resource, object) {
            Some(why) => Self::Join { overlay, why },
            None => Self::Shared { overlay },
        }
    }
}

/// Creates an object, unless the host has one of this name.
pub(super) async fn put(api: &Api, cluster: &ClusterName, resource: &Resource, object: &Value) -> anyhow::Result<Done> {
    let way = Way::of(cluster, resource, object);
    let (namespace, path) = place(resource, object)?;
    let manager = match &way {
        Way::Join { overlay, why } => return join(api, cluster, &path, overlay, why).await,
        // Any other manager would make the object the operator's.
        Way::Shared { .. } => format!("{MANAGER_PREFIX}{cluster}:{MANAGER}"),
        Way::Namespace | Way::Own => MANAGER.to_owned(),
    };
    let collection = format!("{}?fieldManager={manager}", resource.path(namespace)?);
    let created = match api.create(&collection, object).await {
        // The port or the address belongs to another Service of this host.
        Err(error) if is_taken_port(&error) && object["kind"] == "Service" => {
            api.create(&collection, &without_ports(object)).await
        }
        created => created,
    };
    match (created, way) {
        (Ok(_), _) => Ok(Done::Created),
        (Err(error), Way::Namespace) if is_there(&error) => merge_namespace(api, &path, object).await,
        (Err(error), Way::Shared { overlay }) if is_there(&error) => join(api, cluster, &path, overlay, "").await,
        (Err(error), _) if is_there(&error) => Ok(Done::Present),
        (Err(error), _) => Err(error.into()),
    }
}

/// What [`put`] would do. Nothing changes.
pub(super) async fn preview(
    api: &Api,
    cluster: &ClusterName,
    resource: &Resource,
    object: &Value,
) -> anyhow::Result<Done> {
    let way = Way::of(cluster, resource, object);
    let (_, path) = place(resource, object)?;
    let Some(found) = read(api, &path).await? else {
        return match way {
            Way::Join { why, .. } => missing(&why),
            _ => Ok(Done::Created),
        };
    };
    let is_changed = match way {
        Way::Namespace => {
            namespace::check_found(object, &found)?;
            namespace::new_identity(object, &found).is_some()
        }
        Way::Own => false,
        Way::Shared { .. } | Way::Join { .. } => {
            found["metadata"]["annotations"][format!("{OVERLAY_PREFIX}{cluster}")].is_null()
        }
    };
    Ok(if is_changed { Done::Joined } else { Done::Present })
}

/// The namespace of an object, and its path.
fn place<'a>(resource: &Resource, object: &'a Value) -> anyhow::Result<(Option<&'a str>, String)> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().filter(|_| resource.is_namespaced);
    Ok((namespace, resource.path_of(namespace, metadata["name"].as_str().unwrap_or_default())?))
}

/// `None` if the host does not have the object.
async fn read(api: &Api, path: &str) -> anyhow::Result<Option<Value>> {
    match api.get(path).await {
        Err(error) if error.is_not_found() => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn missing(why: &str) -> anyhow::Result<Done> {
    bail!("{why}; create it on the host yourself, and run this command again")
}

/// Adds the overlay of the virtual cluster to an object that the host has.
async fn join(api: &Api, cluster: &ClusterName, path: &str, overlay: &str, why: &str) -> anyhow::Result<Done> {
    let Some(found) = read(api, path).await? else { return missing(why) };
    let key = format!("{OVERLAY_PREFIX}{cluster}");
    if !found["metadata"]["annotations"][&key].is_null() {
        return Ok(Done::Present);
    }
    let patch = json!({"metadata": {"annotations": {key: overlay}}});
    api.patch(&format!("{path}?fieldManager={MANAGER_PREFIX}{cluster}:{MANAGER}"), PatchKind::Merge, &patch).await?;
    Ok(Done::Joined)
}

/// The agent may have created the namespace already. The root namespace gets the identity of the virtual cluster.
async fn merge_namespace(api: &Api, path: &str, object: &Value) -> anyhow::Result<Done> {
    let found = api.get(path).await.context("cannot read it")?;
    namespace::check_found(object, &found)?;
    let Some(identity) = namespace::new_identity(object, &found) else { return Ok(Done::Present) };
    // Not one of the same name that was created since.
    let patch = json!({"metadata": {"annotations": {IDENTITY: identity}, "uid": found["metadata"]["uid"]}});
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
    let (_, path) = place(resource, object)?;
    Ok(read(api, &path).await?.is_none())
}
