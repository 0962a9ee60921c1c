//! StatefulSets. Volume claim templates are ignored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::history;
use super::pods::{create_pod, is_active, is_ready, owned, remove};
use super::status::put_status;
use crate::kinds;
use crate::object;
use crate::store::State;

const HASH: &str = "controller-revision-hash";

pub(super) fn sync(state: &mut State, set: &Arc<Value>) {
    let (name, namespace) = (object::name(set).to_owned(), object::namespace(set).to_owned());
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let is_parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let revision = format!("{name}-{}", object::hash(&set["spec"]["template"]));
    history::sync(state, set, &revision);
    let pods_kind = kinds::of("", "pods");
    for ordinal in 0..wanted {
        let pod_name = format!("{name}-{ordinal}");
        match state.get(pods_kind, &namespace, &pod_name) {
            Some(pod) if is_ready(pod) => continue,
            Some(_) => {}
            None => create_pod(state, set, |pod| {
                object::metadata(pod).remove("generateName");
                object::metadata(pod).insert("name".to_owned(), pod_name.as_str().into());
                let labels = object::map(object::metadata_value(pod), "labels");
                labels.insert(HASH.to_owned(), revision.as_str().into());
                labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), pod_name.as_str().into());
                labels.insert("apps.kubernetes.io/pod-index".to_owned(), ordinal.to_string().into());
                pod["spec"]["hostname"] = pod_name.as_str().into();
                pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
            }),
        }
        if !is_parallel {
            break;
        }
    }
    let mut pods = owned(state, pods_kind, set);
    pods.sort_by_key(|pod| ordinal(pod));
    // Scaling down and rolling updates remove one pod at a time, the one with the largest ordinal first.
    let surplus = pods.iter().rev().find(|pod| is_active(pod) && ordinal(pod) >= wanted);
    let outdated = pods.iter().rev().find(|pod| is_active(pod) && pod["metadata"]["labels"][HASH] != revision.as_str());
    if surplus.is_some() {
        remove(state, surplus);
    } else if set["spec"]["updateStrategy"]["type"] != "OnDelete" && pods.iter().all(|pod| is_ready(pod)) {
        remove(state, outdated);
    }

    let pods: Vec<_> = owned(state, pods_kind, set).into_iter().filter(|pod| is_active(pod)).collect();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let updated = pods.iter().filter(|pod| pod["metadata"]["labels"][HASH] == revision.as_str()).count();
    let is_updated = updated == pods.len() && ready == pods.len() && pods.len() as u64 == wanted;
    let current = match set["status"]["currentRevision"].as_str() {
        Some(current) if !is_updated => current.to_owned(),
        _ => revision.clone(),
    };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "currentReplicas": if is_updated { updated } else { pods.len() - updated },
        "updatedReplicas": updated, "currentRevision": current, "updateRevision": revision, "collisionCount": 0,
    });
    put_status(state, kinds::of("apps", "statefulsets"), set, status);
}

fn ordinal(pod: &Value) -> u64 {
    object::name(pod).rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}
