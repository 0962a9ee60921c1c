//! The node of a pod.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds;
use crate::object;
use crate::store::State;

/// Stores a pod with the name of its node.
pub(crate) fn bind(state: &mut State, mut pod: Value, node: &str) -> Arc<Value> {
    pod["spec"]["nodeName"] = node.into();
    label_topology(state, &mut pod);
    state.put(kinds::of("", "pods"), pod)
}

/// Copies the topology labels of the node to the pod, as the admission plugin `PodTopologyLabels` does (KEP-4742).
fn label_topology(state: &State, pod: &mut Value) {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let Some(node) = state.get(kinds::of("", "nodes"), "", node).cloned() else { return };
    for key in ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"] {
        if node["metadata"]["labels"][key].is_string() {
            object::map(object::metadata_value(pod), "labels")
                .insert(key.to_owned(), node["metadata"]["labels"][key].clone());
        }
    }
}
