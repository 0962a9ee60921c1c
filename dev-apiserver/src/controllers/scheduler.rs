//! The scheduler. It picks the fitting node with the fewest pods, and ignores resource requests.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::event;
use super::node_fit::{Misfit, fits};
use super::status::{condition, put_if_changed};
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::bind;

/// Assigns the pending pods of a namespace to nodes.
pub(super) fn schedule(state: &mut State, namespace: &str) {
    let pods = kinds::of("", "pods");
    let is_waiting = |pod: &&Arc<Value>| {
        pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty)
            && !object::is_deleted(pod)
            && object::items(&pod["spec"]["schedulingGates"]).is_empty()
            && pod["spec"]["schedulerName"] == "default-scheduler"
    };
    let waiting: Vec<_> = state.list(pods, Some(namespace)).filter(is_waiting).cloned().collect();
    if waiting.is_empty() {
        return;
    }
    let nodes: Vec<_> = state.list(kinds::of("", "nodes"), None).cloned().collect();
    let mut load: HashMap<String, usize> = HashMap::new();
    for pod in state.list(pods, None) {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            *load.entry(node.to_owned()).or_default() += 1;
        }
    }
    for pod in waiting {
        match choose(&pod, &nodes, &load) {
            Ok(node) => {
                *load.entry(node.clone()).or_default() += 1;
                let mut bound = Value::clone(&pod);
                set_condition(&mut bound, &condition(&pod, "PodScheduled", true, "", ""));
                let bound = bind(state, bound, &node);
                let message = format!("Successfully assigned {namespace}/{} to {node}", object::name(&pod));
                event::record(state, &bound, "Normal", "Scheduled", &message, "default-scheduler");
            }
            Err(why) => {
                let mut refused = Value::clone(&pod);
                let mut scheduled = condition(&pod, "PodScheduled", false, "Unschedulable", &why);
                object::map_of(&mut scheduled).remove("lastUpdateTime");
                set_condition(&mut refused, &scheduled);
                let is_new = refused != *pod;
                put_if_changed(state, pods, &pod, refused);
                if is_new {
                    event::record(state, &pod, "Warning", "FailedScheduling", &why, "default-scheduler");
                }
            }
        }
    }
}

fn choose(pod: &Value, nodes: &[Arc<Value>], load: &HashMap<String, usize>) -> Result<String, String> {
    let (mut best, mut misfits) = (None, HashMap::<&str, usize>::new());
    for node in nodes {
        let fit = if node["spec"]["unschedulable"] == true {
            Err("were unschedulable")
        } else {
            fits(&pod["spec"], node).map_err(|misfit| match misfit {
                Misfit::Selector => "didn't match Pod's node affinity/selector",
                Misfit::Taint => "had untolerated taint(s)",
            })
        };
        match fit {
            Ok(()) => {
                let name = object::name(node);
                let pods = load.get(name).copied().unwrap_or_default();
                if best.as_ref().is_none_or(|(least, _)| pods < *least) {
                    best = Some((pods, name.to_owned()));
                }
            }
            Err(why) => *misfits.entry(why).or_default() += 1,
        }
    }
    best.map(|(_, name)| name).ok_or_else(|| {
        let mut reasons: Vec<_> = misfits.iter().map(|(why, count)| format!("{count} node(s) {why}")).collect();
        reasons.sort_unstable();
        format!("0/{} nodes are available: {}.", nodes.len(), reasons.join(", "))
    })
}

/// Sets a condition, in the place of one with the same type.
pub(super) fn set_condition(object: &mut Value, condition: &Value) {
    let conditions = object::map(object, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(one) => *one = condition.clone(),
        None => conditions.push(condition.clone()),
    }
}
