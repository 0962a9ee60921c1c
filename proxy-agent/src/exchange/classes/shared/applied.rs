//! Server-side apply to a shared object.
//!
//! The host merges the fields, with a manager of this cluster. Conflicts with managers of other clusters do not count,
//! because a later step decides whether the fields may change. The agent merges the labels and annotations of the
//! overlay.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use kube_wire::query::WriteOptions;
use kube_wire::status::{Cause, Reason};
use kube_wire::{ResourceRequest, Status};
use rewrite::name::MANAGER_PREFIX;
use serde_json::Value;

use crate::exchange::api_request::As;
use crate::exchange::classes::shared::requests::{answered_object, dry_query};
use crate::exchange::classes::shared::wanted::{APPLY, CONTENT_TYPE, Wanted, check_metadata};
use crate::exchange::cost::admit_sent;
use crate::exchange::host::parsed::tree;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::mapper::mapper;
use crate::exchange::write::object::map_json;
use crate::exchange::write::yaml::yaml_to_json;
use crate::refusal::Refusal;
use host_client::full;

/// The result of an apply.
pub(crate) async fn wanted_by_apply(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    body: &Bytes,
) -> Result<Wanted, Refusal> {
    let json = yaml_to_json(body)?;
    admit_sent(call, &json)?;
    let name = request.path_name().unwrap_or_default();
    let mapper = mapper(call, None).partial();
    let (mapped, report) = map_json(request, name, &call.api.program(request), &mapper, &json)?;
    call.note(&report);
    let mut object = tree(&mapped)?;
    let metadata = object["metadata"].clone();
    check_metadata(request, &metadata, None)?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // `precondition` checks the uid and the resource version.
        metadata.retain(|key, _| matches!(&**key, "name" | "labels" | "annotations" | "managedFields"));
    }
    let force = WriteOptions::parse(call.api.info.query())?.force;
    let result = match try_apply_shared(call, request, path, &object, force).await {
        Err(Refusal::Status(status)) if !force && is_conflict(&status) => {
            if let Some(own) = of_own_managers(*status, &manager_prefix(call)) {
                return Err(own.into());
            }
            try_apply_shared(call, request, path, &object, true).await?
        }
        tried => tried?,
    };
    Ok(Wanted { applied: Some(result["metadata"]["managedFields"].clone()), result, metadata })
}

/// The prefix of this cluster's field managers on the host.
pub(crate) fn manager_prefix(call: &Undecided<'_>) -> String {
    format!("{MANAGER_PREFIX}{}:", call.api.cluster.name)
}

async fn try_apply_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    object: &Value,
    force: bool,
) -> Result<Value, Refusal> {
    let mut query = dry_query(call)?;
    if force {
        query.append("force", "true");
    }
    let body = full(Bytes::from(object.to_string()));
    let mut dry = upstream::request(&call.api, Method::PATCH, &upstream::target(path, &query), As::Agent, body)?;
    dry.headers_mut().insert(CONTENT_TYPE, APPLY);
    answered_object(call, request, dry).await
}

/// The managed fields to write: those of the host's dry run if their owners have changed, and otherwise those of the
/// live object. Labels and annotations do not count as a change: the host's object does not have them, so that they
/// seem new in each dry run.
///
/// Each manager that applies a large object adds an entry of about its size, and etcd limits the whole object to 1.5
/// MiB (`--max-request-bytes`). Above a limit, an apply is not recorded. If the next apply leaves out a field, it stays
/// then. Each cluster has its own limit too, so that one cluster does not keep those of others from being recorded.
pub(crate) fn managed(tried: &Value, live: &Value, prefix: &str) -> Value {
    let is_small = |prefix, limit| size(tried, prefix) <= limit;
    let is_recorded = is_small(prefix, MAX_MANAGED / 8) && is_small(MANAGER_PREFIX, MAX_MANAGED);
    if is_recorded && owned(tried) != owned(live) { tried.clone() } else { live.clone() }
}

/// The limit on the entries of all virtual clusters' managers in one object, in bytes. One cluster has an eighth of it.
const MAX_MANAGED: usize = 512 * 1024;

/// The size of the entries of managers with this prefix, in bytes of JSON.
fn size(fields: &Value, prefix: &str) -> usize {
    let entries = fields.as_array().into_iter().flatten();
    let own = entries.filter(|entry| entry["manager"].as_str().is_some_and(|manager| manager.starts_with(prefix)));
    own.map(|entry| entry.to_string().len()).sum()
}

/// The owners of all fields outside of `metadata`.
fn owned(fields: &Value) -> BTreeSet<String> {
    let entries = fields.as_array().into_iter().flatten().filter_map(|entry| {
        let mut entry = entry.clone();
        let members = entry.as_object_mut()?;
        members.remove("time");
        let fields = members.get_mut("fieldsV1").and_then(Value::as_object_mut)?;
        fields.remove("f:metadata");
        (!fields.is_empty()).then(|| entry.to_string())
    });
    entries.collect()
}

fn is_conflict(status: &Status) -> bool {
    status.code == 409 && status.details.as_ref().is_some_and(|details| !details.causes.is_empty())
}

/// The conflicts with managers of this cluster and of the host; `None` if there are none. Each conflict names its
/// manager (`newConflictsError` in apimachinery's `util/managedfields/internal`).
fn of_own_managers(status: Status, prefix: &str) -> Option<Status> {
    let is_foreign = |message: &str| {
        message.contains(&format!("conflict with \"{MANAGER_PREFIX}")) && !message.contains(&format!("\"{prefix}"))
    };
    let mut details = status.details?;
    details.causes.retain(|cause| !is_foreign(&cause.message) && !is_of_overlay(cause, prefix));
    for cause in &mut details.causes {
        cause.message = cause.message.replace(prefix, "");
    }
    let fields: Vec<_> = details.causes.iter().map(|cause| format!("{}: {}", cause.message, cause.field)).collect();
    if fields.is_empty() {
        return None;
    }
    let (number, some) = (fields.len(), if fields.len() == 1 { "conflict" } else { "conflicts" });
    let message = format!("Apply failed with {number} {some}: {}", fields.join("; "));
    Some(Status { details: Some(details), ..Status::failure(409, Reason::Conflict, message) })
}

/// Whether the conflict is about a label or annotation of the host's object. The cluster does not change that one, but
/// sets its own in the overlay.
fn is_of_overlay(cause: &Cause, prefix: &str) -> bool {
    let is_own = cause.message.contains(&format!("\"{prefix}"));
    let is_metadata = [".metadata.labels", ".metadata.annotations"].iter().any(|map| cause.field.starts_with(map));
    is_metadata && !is_own
}

#[cfg(test)]
mod tests {
    use kube_wire::status::Details;
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_that_the_host_does_not_have_are_no_change() {
        let entry =
            |time: &str, fields: Value| json!({"manager": "atoll:ke:kubectl", "time": time, "fieldsV1": fields});
        let overlay = entry("1", json!({"f:metadata": {"f:annotations": {}}}));
        let managed = |tried: &Value, live: &Value| managed(tried, live, "atoll:ke:");
        let live = json!([overlay, entry("1", json!({"f:value": {}}))]);
        let same = json!([entry("2", json!({"f:value": {}, "f:metadata": {"f:labels": {}}})), overlay]);
        let other = json!([entry("2", json!({"f:value": {}, "f:description": {}})), overlay]);
        assert_eq!(managed(&same, &live), live);
        assert_eq!(managed(&other, &live), other);
        assert_eq!(managed(&same, &Value::Null), same);
        let large = json!({"f:spec": {"f:x".repeat(MAX_MANAGED / 24): {}}});
        assert_eq!(managed(&json!([entry("2", large.clone())]), &live), live);
        // Entries of other managers do not count as the cluster's own, but all clusters together have a limit, too.
        let by = |manager: &str| json!({"manager": manager, "fieldsV1": large});
        for manager in ["helm", "atoll:hz:kubectl", "atoll:ke-2:kubectl"] {
            assert_eq!(managed(&json!([by(manager)]), &live), json!([by(manager)]), "{manager}");
        }
        let crowd: Vec<_> = (0..9).map(|number| by(&format!("atoll:hz-{number}:kubectl"))).collect();
        assert_eq!(managed(&crowd.into(), &live), live);
    }

    #[test]
    fn managers_of_other_clusters_are_no_conflict() {
        let cause = |manager: &str| Cause {
            message: format!("conflict with \"{manager}\" using v1"),
            field: ".value".into(),
            ..Cause::default()
        };
        let own = |managers: &[&str]| {
            let causes = managers.iter().map(|manager| cause(manager)).collect();
            let details = Some(Details { causes, ..Details::default() });
            let status = Status { details, ..Status::failure(409, Reason::Conflict, "") };
            assert!(is_conflict(&status));
            of_own_managers(status, "atoll:ke:").map(|status| status.message)
        };
        assert_eq!(own(&["atoll:hz:kubectl", "atoll:ke-2:kubectl"]), None);
        let expected = "Apply failed with 1 conflict: conflict with \"helm\" using v1: .value";
        assert_eq!(own(&["atoll:hz:kubectl", "atoll:ke:helm"]).as_deref(), Some(expected));
        let expected = "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .value";
        assert_eq!(own(&["kubectl"]).as_deref(), Some(expected));
        for (manager, is_of_overlay) in [("kubectl", true), ("atoll:ke:kubectl", false)] {
            let label = Cause { field: ".metadata.labels.a".into(), ..cause(manager) };
            assert_eq!(super::is_of_overlay(&label, "atoll:ke:"), is_of_overlay, "{manager}");
            assert!(!super::is_of_overlay(&cause(manager), "atoll:ke:"));
        }
    }
}
