//! Writes to the subresource `status` of a definition.
//!
//! The status is that of the host's object, so a virtual cluster may write it only if no other cluster has the
//! definition. Fields that the host's controllers derive from all definitions of a group cannot be changed: with a
//! forged `acceptedNames`, a definition could take a name of the operator's.

use http::Method;
use kube_wire::{ResourceRequest, Status, Verb};
use serde_json::Value;

use crate::exchange::body::Body;
use crate::exchange::classes::shared::read::shared_transform;
use crate::exchange::classes::shared::requests::{is_ending, put_upstream, read_shared_object, write_query};
use crate::exchange::classes::shared::write::{OPERATORS, precondition, wanted_of};
use crate::exchange::plan::{Plan, Replan};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::may_grow;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use virtual_cluster::shared::HostObject;

/// The refusal if other virtual clusters have the definition too.
const OTHERS: &str = "other virtual clusters of this host share it, so none of them can write its status";

/// The conditions that controllers of apiextensions-apiserver maintain (`CustomResourceDefinitionConditionType` in
/// apiextensions/v1).
const HOSTS_CONDITIONS: [&str; 5] =
    ["Established", "NamesAccepted", "NonStructuralSchema", "Terminating", "KubernetesAPIApprovalPolicyConformant"];

pub(crate) async fn write_status(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let (cluster, body) = (call.api.cluster.name.as_str(), body.bytes());
    let name = request.path_name().unwrap_or_default();
    let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
    let mut of_object = request.path();
    of_object.subresource = None;
    let live = read_shared_object(call, request, &of_object.build()).await?;
    let mut live = live.filter(|live| live.is_seen_by(cluster)).ok_or_else(missing)?;
    if !live.is_of_clusters() {
        return Err(forbidden(request, OPERATORS));
    }
    if live.attached().has_others(cluster) {
        return Err(forbidden(request, OTHERS));
    }
    if !is_ending(&live) {
        may_grow(call, request, body.len())?;
    }
    let path = request.path().build();
    let patch = if request.verb() == Verb::Patch { Some(call.api.patch_type()?) } else { None };
    let wanted = wanted_of(call, request, patch, &path, Some(&live), &body).await?;
    precondition(request, &wanted.metadata, &live)?;
    live.unload(cluster);
    let mut object = live.value().clone();
    object["status"] = status(&live.value()["status"], &wanted.result["status"]);
    let mut object = HostObject::new(object);
    if let Some(managed) = wanted.applied {
        object.set("managedFields", managed);
    }
    let mut upstream = put_upstream(call, Method::PUT, &path, &write_query(call)?, object.value())?;
    upstream::readable(&call.api, &mut upstream)?;
    let mut plan = Plan::new(&call.api, upstream, shared_transform(call, request));
    plan.replan = Replan::AfterConflict;
    Ok(plan)
}

/// The status that the client requests, with the fields of the host's controllers.
fn status(live: &Value, wanted: &Value) -> Value {
    let conditions = |status: &Value, of_host: bool| -> Vec<Value> {
        let all = status["conditions"].as_array().into_iter().flatten();
        let is_hosts =
            |condition: &Value| condition["type"].as_str().is_some_and(|kind| HOSTS_CONDITIONS.contains(&kind));
        all.filter(|condition| is_hosts(condition) == of_host).cloned().collect()
    };
    let mut status = live.clone();
    status["conditions"] = [conditions(live, true), conditions(wanted, false)].concat().into();
    if !wanted["storedVersions"].is_null() {
        status["storedVersions"] = wanted["storedVersions"].clone();
    }
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_hosts_controllers_stay() {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "reason": reason});
        let live = json!({
            "acceptedNames": {"kind": "Gear"},
            "conditions": [condition("NamesAccepted", "NoConflicts"), condition("Own", "Before")],
            "storedVersions": ["v1", "v2"],
        });
        let wanted = json!({
            "acceptedNames": {"kind": "Certificate"},
            "conditions": [condition("Established", "Forged"), condition("Own", "After")],
            "storedVersions": ["v2"],
        });
        let expected = json!({
            "acceptedNames": {"kind": "Gear"},
            "conditions": [condition("NamesAccepted", "NoConflicts"), condition("Own", "After")],
            "storedVersions": ["v2"],
        });
        assert_eq!(status(&live, &wanted), expected);
        assert_eq!(status(&json!({}), &json!({})), json!({"conditions": []}));
    }
}
