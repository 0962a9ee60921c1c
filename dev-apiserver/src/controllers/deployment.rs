//! Deployments: one ReplicaSet for each template, and rollouts from the old ones to the new one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::event;
use super::pods::{owned, owner_reference, share};
use super::status::{condition, put_if_changed, put_status};
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn sync(state: &mut State, deployment: &Arc<Value>) {
    let sets = kinds::of("apps", "replicasets");
    let mut all = owned(state, sets, deployment);
    let hash = object::hash(&deployment["spec"]["template"]);
    let is_new = |set: &Value| set["metadata"]["labels"][HASH] == hash;
    let revision = 1 + all.iter().filter(|set| !is_new(set)).map(|set| revision_of(set)).max().unwrap_or(0);
    let is_paused = deployment["spec"]["paused"] == true;
    match all.iter().find(|set| is_new(set)) {
        None if is_paused => {}
        None => {
            create_set(state, deployment, &hash, revision);
            all = owned(state, sets, deployment);
        }
        Some(set) => {
            // After a rollback, an old ReplicaSet is the latest again.
            let mut latest = Value::clone(set);
            *object::map(object::metadata_value(&mut latest), "annotations") =
                annotations(deployment, revision.max(revision_of(set)));
            put_if_changed(state, sets, set, latest);
            all = owned(state, sets, deployment);
        }
    }
    let wanted = number(&deployment["spec"]["replicas"]);
    let (new, old): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|set| is_new(set));
    if let Some(new) = new.first() {
        set_revision(state, deployment, revision_of(new).max(revision));
        if !is_paused || old.iter().all(|set| number(&set["spec"]["replicas"]) == 0) {
            rollout(state, deployment, wanted, new, &old);
        }
        remove_history(state, deployment, &old);
    }
    let Some(deployment) =
        state.get(kinds::of("apps", "deployments"), object::namespace(deployment), object::name(deployment)).cloned()
    else {
        return;
    };
    let all = owned(state, sets, &deployment);
    let status = status(&deployment, wanted, &all, &hash);
    put_status(state, kinds::of("apps", "deployments"), &deployment, status);
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn revision_of(set: &Value) -> u64 {
    set["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn create_set(state: &mut State, deployment: &Value, hash: &str, revision: u64) {
    let mut template = deployment["spec"]["template"].clone();
    object::map(object::metadata_value(&mut template), "labels").insert(HASH.to_owned(), hash.into());
    let mut selector = deployment["spec"]["selector"].clone();
    object::map(&mut selector, "matchLabels").insert(HASH.to_owned(), hash.into());
    let set = json!({
        "metadata": {
            "name": format!("{}-{hash}", object::name(deployment)),
            "labels": template["metadata"]["labels"],
            "annotations": annotations(deployment, revision),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0, "selector": selector, "template": template,
            "minReadySeconds": deployment["spec"]["minReadySeconds"],
        },
    });
    // This fails only if the namespace is terminating. The template was validated with the Deployment.
    let _ =
        create(state, kinds::of("apps", "replicasets"), object::namespace(deployment), set, Writer::CONTROLLER, false);
}

/// The annotations of a ReplicaSet: those of the Deployment, without those that `skipCopyAnnotation` in
/// `deployment_util.go` lists.
fn annotations(deployment: &Value, revision: u64) -> Map<String, Value> {
    let all = object::texts(&deployment["metadata"]["annotations"]).into_iter();
    let own = all.filter(|(key, _)| *key != REVISION && *key != "kubectl.kubernetes.io/last-applied-configuration");
    let mut annotations: Map<_, _> = own.map(|(key, value)| (key.to_owned(), value.into())).collect();
    annotations.insert(REVISION.to_owned(), revision.to_string().into());
    annotations
}

fn set_revision(state: &mut State, deployment: &Value, revision: u64) {
    let mut changed = deployment.clone();
    object::map(object::metadata_value(&mut changed), "annotations")
        .insert(REVISION.to_owned(), revision.to_string().into());
    put_if_changed(state, kinds::of("apps", "deployments"), deployment, changed);
}

/// One step of a rollout, within `maxSurge` and `maxUnavailable`.
fn rollout(state: &mut State, deployment: &Value, wanted: u64, new: &Arc<Value>, old: &[Arc<Value>]) {
    let strategy = &deployment["spec"]["strategy"];
    let desired = |set: &Value| number(&set["spec"]["replicas"]);
    let current = |set: &Value| number(&set["status"]["replicas"]);
    let is_old_left = old.iter().any(|set| desired(set) > 0 || current(set) > 0);
    if strategy["type"] == "Recreate" {
        for set in old {
            scale(state, deployment, set, 0);
        }
        if !is_old_left {
            scale(state, deployment, new, wanted);
        }
        return;
    }
    let rolling = &strategy["rollingUpdate"];
    let surge = share(&rolling["maxSurge"], wanted, true);
    let unavailable = match share(&rolling["maxUnavailable"], wanted, false) {
        0 if surge == 0 => 1,
        share => share,
    };
    let old_desired: u64 = old.iter().map(|set| desired(set)).sum();
    let room = (wanted + surge).saturating_sub(old_desired + desired(new));
    let target = if is_old_left { wanted.min(desired(new) + room) } else { wanted };
    scale(state, deployment, new, target);
    let available: u64 = old.iter().chain([new]).map(|set| number(&set["status"]["availableReplicas"])).sum();
    let mut spare = available.saturating_sub(wanted.saturating_sub(unavailable));
    for set in old {
        // Pods that are not available can always be removed (`cleanupUnhealthyReplicas`).
        let broken = desired(set).saturating_sub(number(&set["status"]["availableReplicas"]));
        let surplus = (spare + broken).min(desired(set));
        spare = spare.saturating_sub(surplus.saturating_sub(broken));
        scale(state, deployment, set, desired(set) - surplus);
    }
}

fn scale(state: &mut State, deployment: &Value, set: &Arc<Value>, replicas: u64) {
    let mut scaled = Value::clone(set);
    if number(&scaled["spec"]["replicas"]) == replicas {
        return;
    }
    scaled["spec"]["replicas"] = replicas.into();
    let generation = number(&scaled["metadata"]["generation"]) + 1;
    scaled["metadata"]["generation"] = generation.into();
    let before = number(&set["spec"]["replicas"]);
    state.put(kinds::of("apps", "replicasets"), scaled);
    let (direction, name) = (if replicas > before { "up" } else { "down" }, object::name(set));
    let message = format!("Scaled {direction} replica set {name} from {before} to {replicas}");
    event::record(state, deployment, "Normal", "ScalingReplicaSet", &message, "deployment-controller");
}

fn remove_history(state: &mut State, deployment: &Value, old: &[Arc<Value>]) {
    let limit =
        usize::try_from(deployment["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10)).unwrap_or(usize::MAX);
    let mut empty: Vec<_> = old
        .iter()
        .filter(|set| number(&set["spec"]["replicas"]) == 0 && number(&set["status"]["replicas"]) == 0)
        .collect();
    empty.sort_by_key(|set| std::cmp::Reverse(revision_of(set)));
    for set in empty.into_iter().skip(limit) {
        state.remove(kinds::of("apps", "replicasets"), object::namespace(set), object::name(set));
    }
}

fn status(deployment: &Value, wanted: u64, all: &[Arc<Value>], hash: &str) -> Value {
    let sum = |field: &str| all.iter().map(|set| number(&set["status"][field])).sum::<u64>();
    let new = all.iter().find(|set| set["metadata"]["labels"][HASH] == hash);
    let updated = new.map_or(0, |set| number(&set["status"]["replicas"]));
    let (replicas, ready, available) = (sum("replicas"), sum("readyReplicas"), sum("availableReplicas"));
    let unavailable = share(&deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], wanted, false);
    let is_available = available >= wanted.saturating_sub(unavailable);
    let name = object::name(deployment);
    let set = new.map_or_else(|| name.to_owned(), |set| object::name(set).to_owned());
    let is_complete = updated == wanted && replicas == wanted && available == wanted;
    let available_condition = if is_available {
        condition(deployment, "Available", true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        let message = "Deployment does not have minimum availability.";
        condition(deployment, "Available", false, "MinimumReplicasUnavailable", message)
    };
    let progressing = if is_complete {
        let message = format!("ReplicaSet {set:?} has successfully progressed.");
        condition(deployment, "Progressing", true, "NewReplicaSetAvailable", &message)
    } else {
        let message = format!("ReplicaSet {set:?} is progressing.");
        condition(deployment, "Progressing", true, "ReplicaSetUpdated", &message)
    };
    let some = |count: u64| (count > 0).then_some(count);
    json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": some(replicas), "updatedReplicas": some(updated), "readyReplicas": some(ready),
        "availableReplicas": some(available), "unavailableReplicas": some(wanted.max(replicas).saturating_sub(available)),
        "conditions": [available_condition, progressing],
    })
}
