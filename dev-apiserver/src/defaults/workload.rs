//! Deployments and the other kinds that create pods.

use serde_json::{Value, json};

use super::pod;
use crate::object::{self, default};

/// Sets the defaults of a kind in the group `apps`.
pub(super) fn apply(resource: &str, spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    template(spec);
    match resource {
        "deployments" => {
            default(spec, "replicas", 1);
            default(spec, "progressDeadlineSeconds", 600);
            default(spec, "revisionHistoryLimit", 10);
            default(spec, "strategy", json!({"type": "RollingUpdate"}));
            default(&mut spec["strategy"], "type", "RollingUpdate");
            if spec["strategy"]["type"] == "RollingUpdate" {
                default(&mut spec["strategy"], "rollingUpdate", json!({}));
                default(&mut spec["strategy"]["rollingUpdate"], "maxSurge", "25%");
                default(&mut spec["strategy"]["rollingUpdate"], "maxUnavailable", "25%");
            }
        }
        "replicasets" => default(spec, "replicas", 1),
        "daemonsets" => {
            default(spec, "revisionHistoryLimit", 10);
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
            default(spec, "updateStrategy", rolling);
        }
        "statefulsets" => {
            default(spec, "replicas", 1);
            default(spec, "podManagementPolicy", "OrderedReady");
            default(spec, "revisionHistoryLimit", 10);
            default(spec, "updateStrategy", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
            default(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            );
        }
        _ => {}
    }
}

/// Sets the defaults of a Job.
pub(super) fn job(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    template(spec);
    default(spec, "backoffLimit", 6);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "completions", 1);
    default(spec, "parallelism", 1);
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    default(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

/// Generates the selector of a new Job.
pub(super) fn job_on_create(job: &mut Value) {
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    if let Some(labels) = labels.as_object() {
        let metadata = object::metadata(&mut job["spec"]["template"]);
        let slot = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(slot) = slot.as_object_mut() {
            slot.extend(labels.clone());
        }
    }
    if job["metadata"]["labels"].is_null() {
        let labels = job["spec"]["template"]["metadata"]["labels"].clone();
        object::metadata(job).insert("labels".to_owned(), labels);
    }
    if job["spec"]["manualSelector"] != true {
        job["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    }
    job["status"] = json!({});
}

/// Sets the defaults of a CronJob.
pub(super) fn cron_job(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "failedJobsHistoryLimit", 1);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "suspend", false);
    pod::spec(&mut spec["jobTemplate"]["spec"]["template"]["spec"]);
}

fn template(spec: &mut Value) {
    if spec["template"].is_object() {
        pod::spec(&mut spec["template"]["spec"]);
    }
}
