//! The columns of kinds that no controller of this server acts on, and of some others.

use serde_json::Value;

use super::age::since;
use super::cell::text_or;
use super::column::{AGE, Column, NAME, boolean, number, text, wide};
use super::workload;
use crate::object;

pub(super) const CRON_JOBS: &[Column] = &[
    NAME,
    text("Schedule", |object| text_or(object, "/spec/schedule", "")),
    text("Timezone", |object| text_or(object, "/spec/timeZone", "<none>")),
    text("Suspend", |object| if object["spec"]["suspend"] == true { "True".into() } else { "False".into() }),
    number("Active", |object| object::items(&object["status"]["active"]).len().into()),
    text("Last Schedule", |object| match &object["status"]["lastScheduleTime"] {
        Value::Null => "<none>".into(),
        time => since(time).into(),
    }),
    AGE,
    wide("Containers", |object| workload::containers(&object["spec"]["jobTemplate"])),
    wide("Images", |object| workload::images(&object["spec"]["jobTemplate"])),
    wide("Selector", |object| workload::selector(&object["spec"]["jobTemplate"])),
];

pub(super) const INGRESSES: &[Column] = &[
    NAME,
    text("Class", |object| text_or(object, "/spec/ingressClassName", "<none>")),
    text("Hosts", hosts),
    text("Address", |_| "".into()),
    text("Ports", |object| if object["spec"]["tls"].is_array() { "80, 443".into() } else { "80".into() }),
    AGE,
];

pub(super) const NETWORK_POLICIES: &[Column] = &[
    NAME,
    text("Pod-Selector", |object| {
        let selector = object::label_selector(&object["spec"]["podSelector"]).map(|selector| selector.to_string());
        selector.filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned()).into()
    }),
    AGE,
];

pub(super) const BUDGETS: &[Column] = &[
    NAME,
    text("Min Available", |object| text_or(object, "/spec/minAvailable", "N/A")),
    text("Max Unavailable", |object| text_or(object, "/spec/maxUnavailable", "N/A")),
    number("Allowed Disruptions", |object| object["status"]["disruptionsAllowed"].as_u64().unwrap_or(0).into()),
    AGE,
];

pub(super) const QUOTAS: &[Column] = &[
    NAME,
    text("Request", |object| usage(object, |resource| !resource.starts_with("limits."))),
    text("Limit", |object| usage(object, |resource| resource.starts_with("limits."))),
    AGE,
];

pub(super) const CLAIMS: &[Column] = &[
    NAME,
    text("Status", |object| text_or(object, "/status/phase", "")),
    text("Volume", |object| text_or(object, "/spec/volumeName", "")),
    text("Capacity", |object| text_or(object, "/status/capacity/storage", "")),
    text("Access Modes", |object| access_modes(&object["status"]["accessModes"])),
    text("StorageClass", |object| text_or(object, "/spec/storageClassName", "")),
    text("VolumeAttributesClass", |object| text_or(object, "/spec/volumeAttributesClassName", "<unset>")),
    AGE,
    wide("VolumeMode", |object| text_or(object, "/spec/volumeMode", "<unset>")),
];

pub(super) const REVISIONS: &[Column] = &[
    NAME,
    text("Controller", |object| {
        let owners = object::items(&object["metadata"]["ownerReferences"]);
        let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else { return "<none>".into() };
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split('/').next().unwrap_or_default();
        format!("{}.{group}/{}", text("kind").to_lowercase(), text("name")).into()
    }),
    number("Revision", |object| object["revision"].clone()),
    AGE,
];

pub(super) const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    number("Value", |object| object["value"].clone()),
    boolean("Global-Default", |object| (object["globalDefault"] == true).into()),
    AGE,
    text("PreemptionPolicy", |object| text_or(object, "/preemptionPolicy", "PreemptLowerPriority")),
];

fn hosts(ingress: &Value) -> Value {
    let rules = object::items(&ingress["spec"]["rules"]).iter();
    let hosts: Vec<_> = rules.filter_map(|rule| rule["host"].as_str()).filter(|host| !host.is_empty()).collect();
    if hosts.is_empty() { "*".into() } else { hosts.join(",").into() }
}

/// `pods: 0/3, services: 1/2`
fn usage(quota: &Value, is_shown: impl Fn(&str) -> bool) -> Value {
    let hard = object::texts(&quota["status"]["hard"]);
    let hard = if hard.is_empty() { object::texts(&quota["spec"]["hard"]) } else { hard };
    let used = object::texts(&quota["status"]["used"]);
    let shown = hard.iter().filter(|(resource, _)| is_shown(resource));
    let parts: Vec<_> =
        shown.map(|(resource, hard)| format!("{resource}: {}/{hard}", used.get(resource).unwrap_or(&"0"))).collect();
    parts.join(", ").into()
}

fn access_modes(modes: &Value) -> Value {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        Some("ReadWriteOncePod") => "RWOP",
        _ => "",
    };
    object::items(modes).iter().map(short).collect::<Vec<_>>().join(",").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quota_shows_what_is_used_of_it() {
        let quota = json!({
            "spec": {"hard": {"pods": "3", "limits.cpu": "1"}},
            "status": {"hard": {"pods": "3", "limits.cpu": "1"}, "used": {"pods": "2"}},
        });
        assert_eq!((QUOTAS[1].cell(&quota), QUOTAS[2].cell(&quota)), ("pods: 2/3".into(), "limits.cpu: 0/1".into()));
    }

    #[test]
    fn a_revision_names_its_controller() {
        let owner = json!({"controller": true, "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "each"});
        assert_eq!(REVISIONS[1].cell(&json!({"metadata": {"ownerReferences": [owner]}})), "daemonset.apps/each");
    }
}
