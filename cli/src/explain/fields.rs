//! The changes of an object before it is sent to the host, field by field, with a reason for each.
//!
//! This module compares the two objects. The rewriting engine does not report its reasons, so they are derived from the
//! values.

use protocol::ClusterName;
use rewrite::{HostNamespace, VirtualNamespace};
use serde_json::Value;

/// One difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// `spec.template.spec.nodeSelector.location`
    pub(super) field: String,
    /// `edge -> edge-ke-beijing`, `+ beijing`, `- x`
    pub(super) values: String,
    pub(super) reason: String,
}

/// All differences, in the order of the fields.
pub(super) fn changes(cluster: &ClusterName, before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(cluster, &mut String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(
    cluster: &ClusterName,
    field: &mut String,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Change>,
) {
    let length = field.len();
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(_)) | None, Some(Value::Object(new))) => {
            for (key, after) in new {
                push(field, key);
                compare(cluster, field, before.and_then(|old| old.get(key)), Some(after), found);
                field.truncate(length);
            }
            for (key, old) in before.and_then(Value::as_object).into_iter().flatten() {
                if !new.contains_key(key) {
                    push(field, key);
                    compare(cluster, field, Some(old), None, found);
                    field.truncate(length);
                }
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                field.extend(["[", &index.to_string(), "]"]);
                compare(cluster, field, old.get(index), new.get(index), found);
                field.truncate(length);
            }
        }
        (before, after) => {
            let values = match (before, after) {
                (Some(before), Some(after)) => format!("{} -> {}", short(before), short(after)),
                (None, Some(after)) => format!("+ {}", short(after)),
                (Some(before), None) => format!("- {}", short(before)),
                (None, None) => return,
            };
            let reason = reason(cluster, field, before, after);
            found.push(Change { field: field.clone(), values, reason });
        }
    }
}

fn reason(cluster: &ClusterName, field: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    let (old, new) = (before.and_then(Value::as_str), after.and_then(Value::as_str));
    if let (Some(old), Some(new)) = (old, new)
        && let (Ok(name), Ok(engine)) = (VirtualNamespace::new(old), rewrite::ClusterName::new(cluster.as_str()))
        && HostNamespace::derive(&name, &engine).as_str() == new
    {
        let shortened = if new == format!("{old}-{cluster}") { "" } else { ", shortened to 63 characters" };
        return format!("a namespace of the virtual cluster, under its name on the host{shortened}");
    }
    if let Some(new) = new
        && (new.starts_with(&format!("vc:{cluster}:")) || new.contains(&format!("-{cluster}:")))
    {
        return "a user or group of the virtual cluster, under its name on the host".to_owned();
    }
    if field.contains("nodeSelector") {
        return format!("keeps pods on the nodes of {cluster}; hidden from clients");
    }
    if field.contains("tolerations") {
        return format!("tolerations of {cluster} in the agent's configuration; hidden from clients");
    }
    if field.contains("atoll.dev/") {
        return "identifies the namespace on the host; hidden from clients".to_owned();
    }
    if field == "metadata.namespace" {
        return "the namespace of the request, under its name on the host".to_owned();
    }
    "contains a name of the virtual cluster, under its name on the host".to_owned()
}

fn push(field: &mut String, key: &str) {
    // Kubernetes writes keys that are not identifiers in brackets.
    if key.contains(['.', '/']) {
        field.extend(["[", key, "]"]);
        return;
    }
    if !field.is_empty() {
        field.push('.');
    }
    field.push_str(key);
}

fn short(value: &Value) -> String {
    const MAX: usize = 160;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut chars = text.chars();
    let cut: String = chars.by_ref().take(MAX).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if chars.next().is_some() { cut + "..." } else { cut }
}
