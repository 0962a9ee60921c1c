//! The columns of workloads.

use serde_json::Value;

use super::age::{human, since};
use super::cell::pairs;
use super::column::{AGE, Column, NAME, number, text, wide};
use crate::object;

pub(super) const DEPLOYMENTS: &[Column] = &[
    NAME,
    text("Ready", ready),
    text("Up-to-date", |object| count(&object["status"]["updatedReplicas"]).to_string().into()),
    text("Available", |object| count(&object["status"]["availableReplicas"]).to_string().into()),
    AGE,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", selector),
];

pub(super) const REPLICA_SETS: &[Column] = &[
    NAME,
    number("Desired", |object| count(&object["spec"]["replicas"]).into()),
    number("Current", |object| count(&object["status"]["replicas"]).into()),
    number("Ready", |object| count(&object["status"]["readyReplicas"]).into()),
    AGE,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", selector),
];

pub(super) const DAEMON_SETS: &[Column] = &[
    NAME,
    number("Desired", |object| count(&object["status"]["desiredNumberScheduled"]).into()),
    number("Current", |object| count(&object["status"]["currentNumberScheduled"]).into()),
    number("Ready", |object| count(&object["status"]["numberReady"]).into()),
    number("Up-to-date", |object| count(&object["status"]["updatedNumberScheduled"]).into()),
    number("Available", |object| count(&object["status"]["numberAvailable"]).into()),
    text("Node Selector", |object| pairs(&object["spec"]["template"]["spec"]["nodeSelector"]).into()),
    AGE,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", selector),
];

pub(super) const STATEFUL_SETS: &[Column] =
    &[NAME, text("Ready", ready), AGE, wide("Containers", containers), wide("Images", images)];

pub(super) const JOBS: &[Column] = &[
    NAME,
    text("Status", job_status),
    text("Completions", |object| {
        let wanted = object["spec"]["completions"].as_u64().unwrap_or(1);
        format!("{}/{wanted}", count(&object["status"]["succeeded"])).into()
    }),
    text("Duration", job_duration),
    AGE,
    wide("Containers", containers),
    wide("Images", images),
    wide("Selector", selector),
];

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn ready(object: &Value) -> Value {
    format!("{}/{}", count(&object["status"]["readyReplicas"]), count(&object["spec"]["replicas"])).into()
}

fn joined(object: &Value, field: &str) -> Value {
    let containers = object::items(&object["spec"]["template"]["spec"]["containers"]);
    let texts: Vec<_> = containers.iter().filter_map(|container| container[field].as_str()).collect();
    texts.join(",").into()
}

pub(super) fn containers(object: &Value) -> Value {
    joined(object, "name")
}

pub(super) fn images(object: &Value) -> Value {
    joined(object, "image")
}

pub(super) fn selector(object: &Value) -> Value {
    object::label_selector(&object["spec"]["selector"])
        .map_or_else(|| "<none>".into(), |selector| selector.to_string().into())
}

fn job_status(job: &Value) -> Value {
    let is = |kind: &str| {
        let conditions = object::items(&job["status"]["conditions"]);
        conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    let status = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job["spec"]["suspend"] == true {
        "Suspended"
    } else {
        "Running"
    };
    status.into()
}

fn job_duration(job: &Value) -> Value {
    let status = &job["status"];
    let second = |time: &Value| {
        time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).map(jiff::Timestamp::as_second)
    };
    match (second(&status["startTime"]), second(&status["completionTime"])) {
        (Some(start), Some(end)) => human(end - start).into(),
        (Some(_), None) => since(&status["startTime"]).into(),
        _ => "".into(),
    }
}
