//! The columns of pods.

use serde_json::Value;

use super::cell::text_or;
use super::column::{AGE, Column, NAME, text, wide};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Ready", ready),
    text("Status", status),
    text("Restarts", restarts),
    AGE,
    wide("IP", |pod| text_or(pod, "/status/podIP", "<none>")),
    wide("Node", |pod| text_or(pod, "/spec/nodeName", "<none>")),
    wide("Nominated Node", |pod| text_or(pod, "/status/nominatedNodeName", "<none>")),
    wide("Readiness Gates", |_| "<none>".into()),
];

fn ready(pod: &Value) -> Value {
    let all = object::items(&pod["spec"]["containers"]).len();
    let ready = statuses(pod).iter().filter(|status| status["ready"] == true).count();
    format!("{ready}/{all}").into()
}

fn status(pod: &Value) -> Value {
    if object::is_deleted(pod) {
        return "Terminating".into();
    }
    for status in statuses(pod) {
        for state in ["waiting", "terminated"] {
            if let Some(reason) = status["state"][state]["reason"].as_str() {
                return reason.into();
            }
        }
    }
    text_or(pod, "/status/reason", pod["status"]["phase"].as_str().unwrap_or_default())
}

fn restarts(pod: &Value) -> Value {
    let count: u64 = statuses(pod).iter().filter_map(|status| status["restartCount"].as_u64()).sum();
    count.to_string().into()
}

fn statuses(pod: &Value) -> &[Value] {
    object::items(&pod["status"]["containerStatuses"])
}
