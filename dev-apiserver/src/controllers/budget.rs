//! What is counted: pods that a disruption budget leaves to evict, objects that a quota allows. Evictions ask the budget;
//! nobody asks the quota.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::pods::{is_active, is_ready, share};
use super::status::{condition, put_status};
use crate::kinds;
use crate::object;
use crate::store::State;

/// The status of a PodDisruptionBudget.
pub(super) fn control(state: &mut State, budget: &Arc<Value>) {
    let Some(selector) = object::label_selector(&budget["spec"]["selector"]) else { return };
    let pods = state.list(kinds::of("", "pods"), Some(object::namespace(budget)));
    let pods: Vec<_> = pods.filter(|pod| is_active(pod) && object::is_selected(&selector, pod)).collect();
    let expected = pods.len() as u64;
    let healthy = pods.iter().filter(|pod| is_ready(pod)).count() as u64;
    let spec = &budget["spec"];
    let desired = match &spec["maxUnavailable"] {
        Value::Null => share(&spec["minAvailable"], expected, true),
        most => expected.saturating_sub(share(most, expected, true)),
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

/// The status of a ResourceQuota: how many objects there are. What pods ask for is not added up.
pub(super) fn count(state: &mut State, quota: &Arc<Value>) {
    let namespace = object::namespace(quota);
    let mut used = Map::new();
    for resource in object::texts(&quota["spec"]["hard"]).into_keys() {
        let name = resource.strip_prefix("count/").unwrap_or(resource);
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let Some(kind) =
            kinds::all().iter().find(|kind| kind.namespaced && (kind.group, kind.resource) == (group, name))
        else {
            continue;
        };
        let objects = state.list(kind, Some(namespace));
        let count = objects.filter(|object| !kind.is_pod() || is_active(object)).count();
        used.insert(resource.to_owned(), count.to_string().into());
    }
    let status = json!({"hard": quota["spec"]["hard"], "used": used});
    put_status(state, kinds::of("", "resourcequotas"), quota, status);
}
