//! Creations, updates and patches.

use bytes::Bytes;
use http::Method;
use kube_wire::media::BodyType;
use kube_wire::name::SegmentName;
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status, Verb};
use serde_json::{Value, json};

use crate::exchange::body::Body;
use crate::exchange::classes::shared::applied::{managed, manager_prefix, wanted_by_apply};
use crate::exchange::classes::shared::leave::instances::is_used_outside;
use crate::exchange::classes::shared::names::free_names;
use crate::exchange::classes::shared::read::shared_transform;
use crate::exchange::classes::shared::redefined;
use crate::exchange::classes::shared::requests::{
    Written, answered_object, is_ending, manager, put_upstream, read_shared_object, write_query,
};
use crate::exchange::classes::shared::stored::store_overlay;
use crate::exchange::classes::shared::wanted::{Wanted, wanted, wanted_by_patch};
use crate::exchange::plan::{After, Plan, Replan};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::{may_create, may_grow, may_store};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::object::received;
use crate::exchange::written;
use crate::refusal::Refusal;
use virtual_cluster::share::large_objects::Size;
use virtual_cluster::shared::{Agreement, HostObject, Kind, digest, handover, is_same, objection};

/// `OptimisticLockErrorMsg` in apiserver's `registry/generic/registry/store.go`.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

/// The refusal to create an object that others have created with another specification.
const OTHERWISE: &str = "virtual clusters of this host share it, and others created it with a different \
                         specification: create it with the same one, or under another name";

/// The refusal to change an object that others have, too.
const CHANGE_RECORDED: &str = "virtual clusters of this host share it, and others use it as it is: your change is recorded, \
                       and is applied once every cluster that uses this object requests the same change; try again";

/// The refusal to change an object of the operator.
pub(crate) const OPERATORS: &str =
    "the operator of the host cluster created it or uses it, so only its labels and annotations can be changed here";

/// The refusal to create an object that is still being deleted.
const BEING_DELETED: &str = "an object of this name is being deleted on the host: try again";

pub(crate) async fn write_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let (cluster, body) = (call.api.cluster.name.as_str(), body.bytes());
    let name = match request.path_name() {
        Some(name) => name.to_owned(),
        None => received(call, &body)?.name()?.name,
    };
    let collection = request.path().build();
    // A name that cannot be in a path is invalid, so that the host refuses the object.
    let segment = SegmentName::new(name.clone()).ok();
    let path = segment.as_ref().map_or(collection, |segment| request.path_with(None, Some(segment)));
    if written == Written::Kind(Kind::CustomResourceDefinition) && request.verb() != Verb::Create {
        // It may be large, and reading it costs the host much, too.
        call.take_turn(Size::Large).await?;
    }
    let live = if segment.is_some() { read_shared_object(call, request, &path).await? } else { None };
    let is_seen = live.as_ref().is_some_and(|live| live.is_seen_by(cluster));
    let patch = if request.verb() == Verb::Patch { Some(call.api.patch_type()?) } else { None };
    let makes = request.verb() == Verb::Create || patch == Some(BodyType::ApplyYaml);
    if request.verb() == Verb::Create && is_seen {
        return Err(Status::already_exists(request.group_resource(), &name).into());
    }
    if !makes && !is_seen {
        return Err(Status::not_found(request.group_resource(), &name).into());
    }
    if !is_seen && live.as_ref().is_some_and(is_ending) {
        return Err(Status::conflict(request.group_resource(), &name, BEING_DELETED).into());
    }
    if !is_seen && patch.is_some() {
        may_create(call, request).await?;
    }
    if !is_seen {
        may_store(call, request, body.len())?;
    }
    let place = if live.is_some() || patch.is_some() { path.clone() } else { request.path().build() };
    let wanted = wanted_of(call, request, patch, &place, live.as_ref(), &body).await?;
    match live {
        None => make(call, request, written, &wanted).await,
        Some(live) if !is_seen => join(call, request, &path, live, &wanted).await,
        Some(live) => {
            precondition(request, &wanted.metadata, &live)?;
            may_become(call, request, &live, &wanted)?;
            change(call, request, written, &path, live, &wanted).await
        }
    }
}

pub(crate) async fn wanted_of(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    patch: Option<BodyType>,
    path: &str,
    live: Option<&HostObject>,
    body: &Bytes,
) -> Result<Wanted, Refusal> {
    match (patch, live) {
        (Some(BodyType::ApplyYaml), _) => wanted_by_apply(call, request, path, body).await,
        (Some(kind), Some(live)) => wanted_by_patch(call, request, path, live, kind, body).await,
        _ => wanted(call, request, path, live, body).await,
    }
}

/// Creates an object that no cluster has.
async fn make(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    wanted: &Wanted,
) -> Result<Box<Plan>, Refusal> {
    objected(call, request, written, wanted)?;
    let is_definition = written == Written::Kind(Kind::CustomResourceDefinition);
    if is_definition {
        free_names(call, request, &wanted.result).await?;
    }
    let mut metadata = json!({});
    for key in ["name", "generateName"] {
        if wanted.metadata[key].is_string() {
            metadata[key] = wanted.metadata[key].clone();
        }
    }
    let mut object = HostObject::new(json!({"metadata": metadata})).saying(&wanted.result);
    object.mark();
    if is_definition {
        object.approve(&wanted.metadata);
    }
    overlay(call, &mut object, wanted)?;
    let moved = store_overlay(call, request, &mut object, WriteOptions::parse(call.api.info.query())?.dry_run).await?;
    let path = collection(request);
    let mut upstream = put_upstream(call, Method::POST, &path, &write_query(call)?, object.value())?;
    upstream::readable(&call.api, &mut upstream)?;
    let mut plan = Plan::new(&call.api, upstream, shared_transform(call, request));
    plan.moved = moved;
    // Another cluster may create it in the meantime.
    plan.replan = Replan::AfterConflict;
    Ok(plan)
}

/// Adds this cluster's overlay to an object that only others have.
async fn join(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    live: HostObject,
    wanted: &Wanted,
) -> Result<Box<Plan>, Refusal> {
    if !is_same(&wanted.result, live.value()) {
        return Err(Status::conflict(request.group_resource(), live.text("name"), OTHERWISE).into());
    }
    let mut plan = put_shared(call, request, path, live, wanted).await?;
    plan.after = After::Created;
    Ok(plan)
}

/// Changes an object that the cluster has.
async fn change(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    path: &str,
    live: HostObject,
    wanted: &Wanted,
) -> Result<Box<Plan>, Refusal> {
    if is_same(&wanted.result, live.value()) {
        return put_shared(call, request, path, live, wanted).await;
    }
    let (cluster, name) = (call.api.cluster.name.as_str(), live.text("name").to_owned());
    let pending_change = digest(&wanted.result);
    match Agreement::to(&live, cluster, &pending_change) {
        Agreement::Never => Err(forbidden(request, OPERATORS)),
        Agreement::Given => {
            objected(call, request, written, wanted)?;
            if written == Written::Kind(Kind::CustomResourceDefinition) {
                redefined::check(call, &live)?;
                if is_used_outside(call, &live).await? {
                    hand_over(call, &name).await?;
                    return Err(forbidden(request, OPERATORS));
                }
                free_names(call, request, &wanted.result).await?;
            }
            let mut object = live.saying(&wanted.result);
            object.clear_pending_changes();
            put_shared(call, request, path, object, wanted).await
        }
        Agreement::Awaited => {
            objected(call, request, written, wanted)?;
            record_pending_change(call, request, path, live, pending_change).await?;
            Err(Status::conflict(request.group_resource(), &name, CHANGE_RECORDED).into())
        }
    }
}

/// Writes `object` with the overlay.
async fn put_shared(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    mut object: HostObject,
    wanted: &Wanted,
) -> Result<Box<Plan>, Refusal> {
    overlay(call, &mut object, wanted)?;
    let moved = store_overlay(call, request, &mut object, WriteOptions::parse(call.api.info.query())?.dry_run).await?;
    let mut query = write_query(call)?;
    if !object.is_of_clusters() {
        // The host records at most ten managers with updates (`capmanagers.go` in apimachinery's
        // `util/managedfields`). Those of virtual clusters would displace the operator's.
        query.set("fieldManager", handover::MANAGER);
    }
    let mut upstream = put_upstream(call, Method::PUT, path, &query, object.value())?;
    upstream::readable(&call.api, &mut upstream)?;
    let mut plan = Plan::new(&call.api, upstream, shared_transform(call, request));
    plan.moved = moved;
    plan.replan = Replan::AfterConflict;
    Ok(plan)
}

/// Writes the client's labels and annotations into the object. An object that others than virtual clusters manage,
/// too, belongs to the operator from now on.
fn overlay(call: &Undecided<'_>, object: &mut HostObject, wanted: &Wanted) -> Result<(), Refusal> {
    let cluster = call.api.cluster.name.as_str();
    let is_of_clusters = object.is_of_clusters();
    if !is_of_clusters {
        object.hand_over();
    }
    let mut overlay = object.attached().overlay(cluster).unwrap_or_default();
    match &wanted.applied {
        Some(fields) => {
            overlay.apply(&manager(call)?.unwrap_or_default(), &wanted.metadata);
            // If the cluster managed fields of an operator's object, the operator's next apply would be a conflict.
            if is_of_clusters {
                let managed = managed(fields, &object.metadata()["managedFields"], &manager_prefix(call));
                object.set("managedFields", managed);
            }
        }
        None => overlay.set(&wanted.metadata, &object.own()),
    }
    overlay.pending_change = None;
    object.join(cluster, &overlay);
    Ok(())
}

/// Hands a definition that others use over to the operator.
async fn hand_over(call: &Undecided<'_>, name: &str) -> Result<(), Refusal> {
    if WriteOptions::parse(call.api.info.query())?.dry_run {
        return Ok(());
    }
    let why = "objects of it exist that no virtual cluster created";
    let api = call.host_api();
    call.outside(Box::pin(handover::hand_over(&api, name, why))).await.map_err(|error| {
        let message = format!("cannot mark the definition on the host as its operator's: {error}");
        Status::service_unavailable(message).with_retry_after(1).into()
    })
}

/// Records the change that the cluster requests, if it is new. After a conflict, it is recorded when the client
/// tries again.
async fn record_pending_change(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    path: &str,
    mut live: HostObject,
    pending_change: String,
) -> Result<(), Refusal> {
    let cluster = call.api.cluster.name.as_str();
    let mut overlay = live.attached().overlay(cluster).unwrap_or_default();
    if WriteOptions::parse(call.api.info.query())?.dry_run || overlay.pending_change.as_ref() == Some(&pending_change) {
        return Ok(());
    }
    overlay.pending_change = Some(pending_change);
    live.join(cluster, &overlay);
    // The pending change is always in the annotation, even if the rest of the overlay is stored elsewhere.
    store_overlay(call, request, &mut live, false).await?;
    let noted = put_upstream(call, Method::PUT, path, &write_query(call)?, live.value())?;
    written::count_bytes(call, noted.body().bytes().len());
    match answered_object(call, request, noted).await {
        Err(Refusal::Status(status)) if status.code != 409 => Err(Refusal::Status(status)),
        Err(refusal @ (Refusal::Host(_) | Refusal::Unreadable(_) | Refusal::Unmapped(_) | Refusal::Exhausted(_))) => {
            Err(refusal)
        }
        Ok(_) | Err(Refusal::Status(_)) => Ok(()),
    }
}

/// Refuses a larger object if the virtual cluster has no room for it. Clients that write an unchanged object again are not affected.
fn may_become(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    live: &HostObject,
    wanted: &Wanted,
) -> Result<(), Refusal> {
    if is_ending(live) || may_grow(call, request, 0).is_ok() {
        return Ok(());
    }
    // Metadata differs between clients and the host, and has a limit of its own.
    let length = |object: &Value| {
        let members = object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata");
        members.map(|(_, member)| member.to_string().len()).sum::<usize>()
    };
    let [before, after] = [live.value(), &wanted.result].map(length);
    if after > before { may_grow(call, request, after) } else { Ok(()) }
}

/// Refuses a specification that acts on the whole host.
fn objected(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    written: Written,
    wanted: &Wanted,
) -> Result<(), Refusal> {
    let Written::Kind(kind) = written else { return Ok(()) };
    match objection(kind, &wanted.result, &call.services.shared.load()) {
        Some(why) => Err(forbidden(request, &why)),
        None => Ok(()),
    }
}

/// Refuses a write if the client has seen another object or version than the live one.
pub(crate) fn precondition(request: &ResourceRequest<'_>, metadata: &Value, live: &HostObject) -> Result<(), Refusal> {
    let differs = |key: &str| {
        let given = metadata[key].as_str().unwrap_or_default();
        !matches!(given, "" | "0") && given != live.text(key)
    };
    if differs("resourceVersion") || differs("uid") {
        return Err(Status::conflict(request.group_resource(), live.text("name"), MODIFIED).into());
    }
    Ok(())
}

/// The path for new objects.
fn collection(request: &ResourceRequest<'_>) -> String {
    let mut path = request.path();
    path.name = None;
    path.build()
}
