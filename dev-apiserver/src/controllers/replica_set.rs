//! ReplicaSets.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{active, create_pod, is_ready, remove};
use super::status::put_status;
use crate::kinds;
use crate::object;
use crate::store::State;

/// The maximum number of pods that one reconciliation creates (`BurstReplicas`).
const BURST_REPLICAS: usize = 500;

pub(super) fn sync(state: &mut State, set: &Arc<Value>) {
    let wanted = usize::try_from(set["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(usize::MAX);
    let mut pods = active(state, set);
    if pods.len() < wanted {
        for _ in 0..(wanted - pods.len()).min(BURST_REPLICAS) {
            create_pod(state, set, |_| {});
        }
    } else if pods.len() > wanted {
        // Pods that are not ready go first, then the youngest.
        pods.sort_by_key(|pod| (is_ready(pod), std::cmp::Reverse(pod["metadata"]["creationTimestamp"].to_string())));
        remove(state, pods.iter().take(pods.len() - wanted));
    }
    let pods = active(state, set);
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let some = |count: usize| (count > 0).then_some(count);
    let status = json!({
        "replicas": pods.len(), "fullyLabeledReplicas": some(pods.len()), "readyReplicas": some(ready),
        "availableReplicas": some(ready), "observedGeneration": set["metadata"]["generation"],
    });
    let kind = kinds::of("apps", "replicasets");
    if let Some(found) = state.get(kind, object::namespace(set), object::name(set)).cloned() {
        put_status(state, kind, &found, status);
    }
}
