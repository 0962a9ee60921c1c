//! Jobs.

use std::sync::Arc;

use serde_json::{Value, json};

use super::event;
use super::pods::{create_pod, is_active, is_ready, owned, remove};
use super::status::{condition, put_status};
use crate::kinds;
use crate::object;
use crate::store::State;

pub(super) fn sync(state: &mut State, job: &Arc<Value>) {
    let is_finished = object::items(&job["status"]["conditions"]).iter().any(|condition| {
        matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
    });
    if is_finished {
        return;
    }
    let number = |field: &str, default: u64| job["spec"][field].as_u64().unwrap_or(default);
    let (wanted, parallel, backoff_limit) =
        (number("completions", 1), number("parallelism", 1), number("backoffLimit", 6));
    let all = owned(state, kinds::of("", "pods"), job);
    let ended = |phase: &str| all.iter().filter(|pod| pod["status"]["phase"] == phase).count() as u64;
    let (succeeded, failed) = (ended("Succeeded"), ended("Failed"));
    let active: Vec<_> = all.iter().filter(|pod| is_active(pod)).cloned().collect();
    let (is_complete, is_failed) = (succeeded >= wanted, failed > backoff_limit);
    let is_suspended = job["spec"]["suspend"] == true;
    if is_complete || is_failed || is_suspended {
        remove(state, &active);
    } else {
        let needed = parallel.min(wanted - succeeded);
        for _ in active.len() as u64..needed {
            create_pod(state, job, |_| {});
        }
    }
    let pods = owned(state, kinds::of("", "pods"), job);
    let running = pods.iter().filter(|pod| is_active(pod)).count();
    let some = |count: u64| (count > 0).then_some(count);
    let mut status = json!({
        "active": some(running as u64), "succeeded": some(succeeded), "failed": some(failed),
        "ready": pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count(),
        "startTime": job["status"]["startTime"], "terminating": 0, "uncountedTerminatedPods": {},
    });
    if status["startTime"].is_null() && !is_suspended {
        status["startTime"] = object::now().into();
    }
    if is_complete {
        status["completionTime"] = object::now().into();
        let message = "Reached expected number of succeeded pods";
        status["conditions"] = json!([
            condition(job, "SuccessCriteriaMet", true, "CompletionsReached", message),
            condition(job, "Complete", true, "CompletionsReached", message),
        ]);
    } else if is_failed {
        let message = "Job has reached the specified backoff limit";
        status["conditions"] = json!([condition(job, "Failed", true, "BackoffLimitExceeded", message)]);
    }
    put_status(state, kinds::of("batch", "jobs"), job, status);
    if is_complete {
        event::record(state, job, "Normal", "Completed", "Job completed", "job-controller");
    }
}
