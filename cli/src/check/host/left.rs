//! RoleBindings that outlived their namespace.
//!
//! When somebody finalizes a namespace by force, an object with a finalizer survives. Nobody sees it there, and it takes
//! effect again when somebody creates a namespace of that name.

use host_client::api::Api;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use ops::config::Location;
use serde_json::Value;

use super::namespaces::Namespaces;
use crate::check::weakness::{Check, Weakness, some};

/// The weakness, from bindings that were listed before the namespaces.
pub(super) async fn weakness(
    api: &Api,
    location: Option<Location>,
    bindings: &[Value],
    namespaces: &Namespaces,
) -> Option<Weakness> {
    let mut left = Vec::new();
    for binding in bindings {
        let (name, namespace) = (binding["metadata"]["name"].as_str()?, binding["metadata"]["namespace"].as_str()?);
        // It may have been deleted with its namespace since.
        if !namespaces.has(namespace) && is_there(api, namespace, name).await {
            left.push(format!("{namespace}/{name}"));
        }
    }
    if left.is_empty() {
        return None;
    }
    Some(Weakness::at(
        Check::LeftBinding,
        location,
        format_args!(
            "host: RoleBindings exist in namespaces that do not exist, and take effect when somebody creates the \
             namespace: {}",
            some(&left)
        ),
        "run `kubectl delete rolebinding NAME -n NAMESPACE`; if a finalizer keeps it, create the namespace (no object \
         of a missing namespace can be changed), remove the finalizer with `kubectl edit`, and delete the namespace \
         again",
    ))
}

/// Whether it still exists. If the host does not answer, assume so: it did a moment ago.
async fn is_there(api: &Api, namespace: &str, name: &str) -> bool {
    let (Ok(namespace), Ok(name)) = (SegmentName::new(namespace), SegmentName::new(name)) else { return false };
    let path = ResourcePath {
        namespace: Some(namespace),
        name: Some(name),
        ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "rolebindings")
    };
    !matches!(api.get(&path.build()).await, Err(error) if error.is_not_found())
}
