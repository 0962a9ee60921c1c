//! ReplicaSets: so many pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{active, is_ready, make, remove};
use super::status::put_status;
use crate::kinds;
use crate::object;
use crate::store::State;

/// A toy makes no more at a time; the rest follows in the next round.
const BURST: usize = 500;

pub(super) fn control(state: &mut State, set: &Arc<Value>) {
    let wanted = usize::try_from(set["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(usize::MAX);
    let mut pods = active(state, set);
    if pods.len() < wanted {
        for _ in 0..(wanted - pods.len()).min(BURST) {
            make(state, set, |_| {});
        }
    } else if pods.len() > wanted {
        // First what is not ready, then what is youngest.
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
