//! PodDisruptionBudgets: the number of pods that may be evicted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{is_active, is_ready, share};
use super::status::{condition, put_status};
use crate::kinds;
use crate::object;
use crate::store::State;

/// Sets the status of a PodDisruptionBudget.
pub(super) fn sync(state: &mut State, budget: &Arc<Value>) {
    let Some(selector) = object::label_selector(&budget["spec"]["selector"]) else { return };
    let pods = state.list(kinds::of("", "pods"), Some(object::namespace(budget)));
    let pods: Vec<_> = pods.filter(|pod| is_active(pod) && object::is_selected(&selector, pod)).collect();
    let expected = pods.len() as u64;
    let healthy = pods.iter().filter(|pod| is_ready(pod)).count() as u64;
    let spec = &budget["spec"];
    let desired = match &spec["maxUnavailable"] {
        Value::Null => share(&spec["minAvailable"], expected, true),
        max => expected.saturating_sub(share(max, expected, true)),
    };
    let allowed = if expected == 0 { 0 } else { healthy.saturating_sub(desired) };
    let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    let generation = &budget["metadata"]["generation"];
    let mut disruption = condition(budget, "DisruptionAllowed", allowed > 0, reason, "");
    object::map_of(&mut disruption).remove("lastUpdateTime");
    disruption["observedGeneration"] = generation.clone();
    let status = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": generation, "conditions": [disruption],
    });
    put_status(state, kinds::of("policy", "poddisruptionbudgets"), budget, status);
}
