//! Moves the content of a root namespace that an earlier version created under another name.
//!
//! Namespaces of clients keep the names from an earlier version. A root namespace cannot, because its name is always
//! derived from that of the virtual cluster.

use host_client::api::{HostApi, Partial, Selection};
use rewrite::name::CLUSTER_LABEL;
use rewrite::{ClusterName, HostNamespace};
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tracing::info;

use super::binding::{Binding, is_deleted};
use super::found::Found;
use super::names::{CLUSTER_ADMIN, ROOT_LABEL};
use super::paths;
use super::reconcile_error::{ReconcileError, is_already_there};

/// Moves the bindings of clients, and then deletes the former root namespace. This is repeated until it is deleted.
pub(super) async fn move_in(
    api: &impl HostApi,
    cluster: &ClusterName,
    root: &HostNamespace,
) -> Result<(), ReconcileError> {
    let Some(former) = HostNamespace::former_root(cluster) else { return Ok(()) };
    let found = match api.get(&paths::namespace(&former)).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if found["metadata"]["labels"][ROOT_LABEL] != cluster.as_str() || is_deleted(&found) {
        return Ok(());
    }
    let (path, everything) = (paths::bindings(&former), Selection::default());
    let mut pages = api.pages(&path, &everything);
    while let Some(page) = pages.next::<Box<RawValue>>().await? {
        for binding in page.iter().filter_map(|binding| moved(binding, cluster, root)) {
            match api.create_text(&paths::bindings(root), binding).await {
                Err(error) if !is_already_there(&error) => return Err(error.into()),
                _ => {}
            }
        }
    }
    let options = json!({"preconditions": {"uid": found["metadata"]["uid"]}});
    match api.delete::<IgnoredAny>(&paths::namespace(&former), &options).await {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error.into()),
        _ => {
            info!(%cluster, %former, %root, "replaced the root namespace");
            Ok(())
        }
    }
}

/// A client's binding for the new root namespace; `None` if the agent created the binding itself.
fn moved(binding: &RawValue, cluster: &ClusterName, root: &HostNamespace) -> Option<String> {
    let found: Found = serde_json::from_str(binding.get()).ok()?;
    let Partial { mut metadata } = serde_json::from_str(binding.get()).ok()?;
    metadata.labels.insert(CLUSTER_LABEL.to_owned(), cluster.to_string());
    let binding = Binding::of(&found).filter(|binding| binding.name != CLUSTER_ADMIN)?;
    Some(binding.object(json!({
        "name": metadata.name, "namespace": root.as_str(),
        "labels": metadata.labels, "annotations": metadata.annotations,
    })))
}
