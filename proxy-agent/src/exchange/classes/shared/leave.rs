//! Deletions: a cluster removes its overlay from an object. The last one deletes the object, unless it belongs to the
//! operator.

pub(crate) mod instances;

use http::Method;
use kube_wire::status::{Details, Outcome};
use kube_wire::{ResourceRequest, Status};

use crate::exchange::body::Body;
use crate::exchange::classes::shared::leave::instances::{delete_instances, is_used_outside};
use crate::exchange::classes::shared::read::shared_transform;
use crate::exchange::classes::shared::requests::{Written, put_upstream, read_shared_object, write_query};
use crate::exchange::plan::{After, Plan, Replan};
use crate::exchange::refusals::forbidden;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::deletion::{Deletion, deletion};
use crate::exchange::written;
use crate::refusal::Refusal;
use virtual_cluster::shared::{HostObject, Kind};

/// The refusal to delete an object of the operator.
const OPERATORS: &str = "the operator of the host cluster created it for all virtual clusters";

pub(crate) async fn leave_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let name = request.path_name().unwrap_or_default();
    leave(call, request, written, name, &request.path().build(), body).await
}

/// Removes the cluster's overlay from the object of this name at `path`, or deletes the object.
pub(crate) async fn leave(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    name: &str,
    path: &str,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let cluster = call.api.cluster.name.as_str();
    let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
    let mut live =
        read_shared_object(call, request, path).await?.filter(|live| live.is_seen_by(cluster)).ok_or_else(missing)?;
    let deletion = deletion(call, &body.bytes())?;
    if let Some(why) = deletion.unmet(live.metadata()) {
        return Err(Status::conflict(request.group_resource(), name, &why).into());
    }
    if live.attached().overlay(cluster).is_none() {
        return Err(forbidden(request, OPERATORS));
    }
    let is_definition = written == Written::Kind(Kind::CustomResourceDefinition);
    let is_last = !live.attached().has_others(cluster);
    if !live.is_of_clusters() || (is_last && is_definition && is_used_outside(call, &live).await?) {
        return leave_to_operator(call, request, path, live, &deletion);
    }
    if is_last {
        return delete_shared(call, request, path, &live, &deletion);
    }
    if is_definition && !deletion.is_dry_run() {
        delete_instances(call, request, &live).await?;
    }
    let gone = gone(request, live.text("name"), live.text("uid"));
    live.leave(cluster);
    leave_to_others(call, request, path, &live, &gone, &deletion)
}

/// The operator created the object or uses it, so only the cluster's overlay is removed. The client still sees the
/// object, but does not wait for its deletion: kubectl waits by uid.
fn leave_to_operator(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    mut live: HostObject,
    deletion: &Deletion,
) -> Result<Box<Plan>, Refusal> {
    live.hand_over();
    live.leave(call.api.cluster.name.as_str());
    let gone = gone(request, live.text("name"), "");
    leave_to_others(call, request, path, &live, &gone, deletion)
}

/// Deletes an object that no other cluster has. If another one joins in the meantime, the preconditions fail.
fn delete_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: &HostObject,
    deletion: &Deletion,
) -> Result<Box<Plan>, Refusal> {
    let mut query = call.api.info.query().borrowed();
    for key in ["propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun"] {
        query.remove(key);
    }
    let options = deletion.of(live.text("uid"), live.text("resourceVersion"));
    let mut upstream = put_upstream(call, Method::DELETE, path, &query, &options)?;
    upstream::readable(&call.api, &mut upstream)?;
    let mut plan = Plan::new(&call.api, upstream, shared_transform(call, request));
    plan.replan = Replan::AfterConflict;
    Ok(plan)
}

fn leave_to_others(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: &HostObject,
    gone: &Status,
    deletion: &Deletion,
) -> Result<Box<Plan>, Refusal> {
    let mut query = write_query(call)?;
    for key in ["propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun"] {
        query.remove(key);
    }
    if deletion.is_dry_run() {
        query.append("dryRun", "All");
    }
    let mut upstream = put_upstream(call, Method::PUT, path, &query, live.value())?;
    upstream.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
    let mut plan = Plan::new(&call.api, upstream, shared_transform(call, request));
    plan.replan = Replan::AfterConflict;
    if !deletion.is_dry_run() {
        written::count_bytes(call, plan.request.body().bytes().len());
        plan.moved.from = live.stored().map(|stored| stored.id.clone());
    }
    plan.after = After::Removed(gone.to_json().into());
    Ok(plan)
}

/// The response of an API server if the object is deleted at once (`handlers/delete.go` in apiserver).
fn gone(request: &ResourceRequest<'_>, name: &str, uid: &str) -> Status {
    let details = Details {
        name: name.to_owned(),
        group: request.group().to_owned(),
        kind: request.resource().to_owned(),
        uid: uid.to_owned(),
        ..Details::default()
    };
    Status { outcome: Outcome::Success, details: Some(details), ..Status::default() }
}
