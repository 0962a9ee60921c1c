//! RoleBindings that have outlived their namespace.
//!
//! An object with a finalizer stays where it is when its namespace is finalized by force. Nobody sees it there, and it is in
//! force again for whoever makes a namespace of that name.

use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use ops::config::Place;
use proxy_agent::host::api::Api;
use serde_json::Value;

use super::namespaces::Namespaces;
use crate::check::weakness::{Check, Weakness, some};

/// Of bindings that were listed before the namespaces were.
pub(super) async fn weakness(
    api: &Api,
    place: Option<Place>,
    bindings: &[Value],
    namespaces: &Namespaces,
) -> Option<Weakness> {
    let mut left = Vec::new();
    for binding in bindings {
        let (name, namespace) = (binding["metadata"]["name"].as_str()?, binding["metadata"]["namespace"].as_str()?);
        // It may have gone with its namespace since.
        if !namespaces.has(namespace) && is_there(api, namespace, name).await {
            left.push(format!("{namespace}/{name}"));
        }
    }
    if left.is_empty() {
        return None;
    }
    Some(Weakness::at(
        Check::LeftBinding,
        place,
        format_args!(
            "host: RoleBindings are in namespaces that do not exist, and in force as soon as somebody makes one of that name: \
             {}",
            some(&left)
        ),
        "`kubectl delete rolebinding NAME -n NAMESPACE`; if a finalizer keeps it, create the namespace, take the finalizer off \
         with `kubectl edit`, since no object of a missing namespace can be changed, and delete the namespace again",
    ))
}

/// Whether it is there by now. If the host does not say, it was a moment ago.
async fn is_there(api: &Api, namespace: &str, name: &str) -> bool {
    let (Ok(namespace), Ok(name)) = (SegmentName::new(namespace), SegmentName::new(name)) else { return false };
    let path = ResourcePath {
        namespace: Some(namespace),
        name: Some(name),
        ..ResourcePath::new("rbac.authorization.k8s.io", "v1", "rolebindings")
    };
    !matches!(api.get(&path.build()).await, Err(error) if error.is_not_found())
}
