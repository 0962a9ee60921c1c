//! Events of the controllers, which `kubectl describe` shows.

use serde_json::{Value, json};

use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

/// The maximum number of events in a namespace.
const MAX_EVENTS: usize = 200;

/// Records an event about an object. It replaces the oldest one if the namespace has too many.
pub(super) fn record(state: &mut State, about: &Value, kind: &str, reason: &str, message: &str, component: &str) {
    let events = kinds::of("", "events");
    let namespace = object::namespace(about);
    let metadata = &about["metadata"];
    let now = object::now();
    let event = json!({
        "metadata": {"name": format!("{}.{:016x}", object::name(about), fastrand::u64(..))},
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"],
            "namespace": metadata["namespace"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "type": kind, "reason": reason, "message": message, "count": 1, "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
    });
    let recorded: Vec<_> = state.list(events, Some(namespace)).cloned().collect();
    if recorded.len() >= MAX_EVENTS
        && let Some(oldest) =
            recorded.iter().min_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default().to_owned())
    {
        state.remove(events, namespace, object::name(oldest));
    }
    // This fails only if the namespace is terminating.
    let _ = create(state, events, namespace, event, Writer::CONTROLLER, false);
}
