//! RoleBindings whose namespace does not exist.
//!
//! If somebody removes the finalizers of a namespace, its objects with finalizers still exist after its deletion.
//! kubectl does not show them in lists of namespaces, and they take effect when somebody creates a namespace with the
//! same name.

use host_client::api::Api;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use ops::config::Location;
use serde_json::Value;

use super::namespaces::Namespaces;
use crate::check::weakness::{Check, Weakness, shorten};

/// Finds such bindings. `bindings` must have been listed before `namespaces`.
pub(super) async fn weakness(
    api: &Api,
    location: Option<Location>,
    bindings: &[Value],
    namespaces: &Namespaces,
) -> Option<Weakness> {
    let mut orphans = Vec::new();
    for binding in bindings {
        let (name, namespace) = (binding["metadata"]["name"].as_str()?, binding["metadata"]["namespace"].as_str()?);
        // The binding may have been deleted with its namespace in the meantime.
        if !namespaces.has(namespace) && exists(api, namespace, name).await {
            orphans.push(format!("{namespace}/{name}"));
        }
    }
    if orphans.is_empty() {
        return None;
    }
    Some(Weakness::at(
        Check::LeftBinding,
        location,
        format_args!(
            "host: RoleBindings exist in namespaces that do not exist, and take effect when somebody creates the \
             namespace: {}",
            shorten(&orphans)
        ),
        "run `kubectl delete rolebinding NAME -n NAMESPACE`; if it has a finalizer, create the namespace (objects of a \
         missing namespace cannot be changed), remove the finalizer with `kubectl edit`, and delete the namespace \
         again",
    ))
}

/// Whether the binding still exists. Without a response, assume that it does, because it was in the list.
async fn exists(api: &Api, namespace: &str, name: &str) -> bool {
    let (Ok(namespace), Ok(name)) = (SegmentName::new(namespace), SegmentName::new(name)) else { return false };
    let path = ResourcePath {
        namespace: Some(namespace),
        name: Some(name),
        ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "rolebindings")
    };
    !matches!(api.get(&path.build()).await, Err(error) if error.is_not_found())
}
