//! DaemonSets: one pod on each node that fits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::history;
use super::node_fit::fits;
use super::pods::{active, create_pod, is_ready, remove};
use super::status::put_status;
use crate::kinds;
use crate::object;
use crate::store::State;

const HASH: &str = "controller-revision-hash";

pub(super) fn sync(state: &mut State, set: &Arc<Value>) {
    let hash = object::hash(&set["spec"]["template"]);
    history::sync(state, set, &hash);
    let spec = &set["spec"]["template"]["spec"];
    let nodes: Vec<String> = state
        .list(kinds::of("", "nodes"), None)
        // DaemonSets tolerate cordoned nodes.
        .filter(|node| fits(spec, node).is_ok())
        .map(|node| object::name(node).to_owned())
        .collect();
    let pods = active(state, set);
    let on = |node: &str| pods.iter().find(|pod| pod["spec"]["nodeName"] == node);
    let is_current = |pod: &Value| pod["metadata"]["labels"][HASH] == hash;
    for node in nodes.iter().filter(|node| on(node).is_none()) {
        create_pod(state, set, |pod| {
            pod["spec"]["nodeName"] = node.as_str().into();
            object::map(object::metadata_value(pod), "labels").insert(HASH.to_owned(), hash.as_str().into());
        });
    }
    let is_misplaced = |pod: &Value| !nodes.iter().any(|node| pod["spec"]["nodeName"] == node.as_str());
    remove(state, pods.iter().filter(|pod| is_misplaced(pod)));
    // A rolling update replaces one pod at a time, while all others are ready.
    let is_rolling = set["spec"]["updateStrategy"]["type"] != "OnDelete";
    if is_rolling && pods.len() == nodes.len() && pods.iter().all(|pod| is_ready(pod)) {
        remove(state, pods.iter().find(|pod| !is_current(pod)));
    }

    let pods = active(state, set);
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({
        "currentNumberScheduled": pods.len(),
        "desiredNumberScheduled": nodes.len(),
        "numberAvailable": (ready > 0).then_some(ready),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberUnavailable": Some(nodes.len().saturating_sub(ready)).filter(|count| *count > 0),
        "observedGeneration": set["metadata"]["generation"],
        "updatedNumberScheduled": pods.iter().filter(|pod| is_current(pod)).count(),
    });
    put_status(state, kinds::of("apps", "daemonsets"), set, status);
}
