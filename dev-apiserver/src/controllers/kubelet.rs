//! Simulated nodes. A pod on a node is `Running` and ready at once, and a deleted pod stops at once. Pods of Jobs succeed
//! after half a second. No container is started.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::status::{condition, put_if_changed};
use crate::kinds;
use crate::object;
use crate::store::State;

/// The time that pods of Jobs run.
const JOB_DURATION: Duration = Duration::from_millis(500);

/// The state of all nodes.
#[derive(Debug, Default)]
pub(super) struct Kubelet {
    /// The end times and namespaces of the pods of Jobs, by uid.
    ends: HashMap<String, (Instant, String)>,
    addresses: u32,
}

// === impl Kubelet ===

impl Kubelet {
    /// The namespaces with pods that end by now.
    pub(super) fn due(&self, now: Instant) -> BTreeSet<String> {
        self.ends.values().filter(|(end, _)| *end <= now).map(|(_, namespace)| namespace.clone()).collect()
    }

    /// The next end time.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ends.values().map(|(end, _)| *end).min()
    }

    /// Starts, stops and ends the pods of a namespace.
    pub(super) fn sync(&mut self, state: &mut State, namespace: &str, now: Instant) {
        let pods: Vec<_> = state.list(kinds::of("", "pods"), Some(namespace)).cloned().collect();
        let alive: BTreeSet<_> = pods.iter().map(|pod| object::uid(pod)).collect();
        self.ends.retain(|uid, (_, home)| home != namespace || alive.contains(uid.as_str()));
        for pod in &pods {
            let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
            if object::is_deleted(pod) {
                stop(state, pod);
            } else if has_node {
                self.sync_pod(state, pod, now);
            }
        }
    }

    fn sync_pod(&mut self, state: &mut State, pod: &Arc<Value>, now: Instant) {
        let kind = kinds::of("", "pods");
        let uid = object::uid(pod).to_owned();
        match pod["status"]["phase"].as_str() {
            Some("Pending") | None => {
                let Some(node) = state
                    .get(kinds::of("", "nodes"), "", pod["spec"]["nodeName"].as_str().unwrap_or_default())
                    .cloned()
                else {
                    return;
                };
                self.addresses += 1;
                let address = format!("10.244.{}.{}", self.addresses / 250 % 250, self.addresses % 250 + 2);
                state.put(kind, running(pod, &node, &address));
                if is_of_job(pod) {
                    self.ends.insert(uid, (now + JOB_DURATION, object::namespace(pod).to_owned()));
                }
            }
            Some("Running") if self.ends.get(&uid).is_some_and(|(end, _)| *end <= now) => {
                self.ends.remove(&uid);
                put_if_changed(state, kind, pod, succeeded(pod));
            }
            _ => {}
        }
    }
}

fn is_of_job(pod: &Value) -> bool {
    let owners = object::items(&pod["metadata"]["ownerReferences"]);
    owners.iter().any(|owner| owner["kind"] == "Job" && owner["controller"] == true)
}

/// Removes a terminating pod, unless it has finalizers.
fn stop(state: &mut State, pod: &Arc<Value>) {
    if !object::has_finalizers(pod) {
        state.remove(kinds::of("", "pods"), object::namespace(pod), object::name(pod));
        return;
    }
    let mut stopped = Value::clone(pod);
    object::metadata(&mut stopped).insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    put_if_changed(state, kinds::of("", "pods"), pod, stopped);
}

fn running(pod: &Value, node: &Value, address: &str) -> Value {
    let now = object::now();
    let mut running = pod.clone();
    let node_address = &node["status"]["addresses"][0]["address"];
    let containers = |field: &str, state: &Value| -> Vec<Value> {
        object::items(&pod["spec"][field])
            .iter()
            .map(|container| {
                json!({
                    "name": container["name"], "image": container["image"], "imageID": "", "ready": true,
                    "started": true, "restartCount": 0, "state": state,
                    "containerID": format!("none://{}", object::new_uid()),
                })
            })
            .collect()
    };
    let statuses = containers("containers", &json!({"running": {"startedAt": now}}));
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
    let initialised = containers("initContainers", &done);
    running["status"] = json!({
        "phase": "Running", "qosClass": pod["status"]["qosClass"], "startTime": now, "podIP": address,
        "podIPs": [{"ip": address}], "hostIP": node_address, "hostIPs": [{"ip": node_address}],
        "observedGeneration": pod["metadata"]["generation"], "containerStatuses": statuses,
        "conditions": conditions(pod, true),
    });
    if !initialised.is_empty() {
        running["status"]["initContainerStatuses"] = initialised.into();
    }
    object::drop_nulls(&mut running);
    running
}

fn succeeded(pod: &Value) -> Value {
    let now = object::now();
    let mut ended = pod.clone();
    ended["status"]["phase"] = "Succeeded".into();
    ended["status"]["conditions"] = conditions(pod, false);
    for status in ended["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
        let started = status["state"]["running"]["startedAt"].clone();
        status["ready"] = false.into();
        status["started"] = false.into();
        status["state"] = json!({"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now,
            "containerID": status["containerID"],
        }});
    }
    ended
}

fn conditions(pod: &Value, is_ready: bool) -> Value {
    let reason = if is_ready { "" } else { "PodCompleted" };
    let mut all = vec![
        condition(pod, "PodReadyToStartContainers", is_ready, "", ""),
        condition(pod, "Initialized", true, reason, ""),
        condition(pod, "Ready", is_ready, reason, ""),
        condition(pod, "ContainersReady", is_ready, reason, ""),
        condition(pod, "PodScheduled", true, "", ""),
    ];
    for condition in &mut all {
        for field in ["lastUpdateTime", "message"] {
            object::map_of(condition).remove(field);
        }
    }
    all.into()
}
