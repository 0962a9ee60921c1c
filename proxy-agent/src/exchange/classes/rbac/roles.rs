//! ClusterRoles: the client's own, which have another name on the host, and those of Kubernetes, which can only be
//! read.

use http::Method;
use kube_wire::name::SegmentName;
use kube_wire::query::ListOptions;
use kube_wire::selector::LabelSelector;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::parked::parked;
use rewrite::request::AGGREGATION_ANNOTATION;
use rewrite::view::Filter;
use serde_json::Value;

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::rbac::attempt::{WrittenRole, may_grant};
use crate::exchange::classes::rbac::try_write::{RESERVED, may_make, new_name, reserved, try_write};
use crate::exchange::kinds::{group_kind, program};
use crate::exchange::plan::{Plan, WrittenRbac};
use crate::exchange::query::{evaluated_selector, list_query, list_transform};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::{may_grow, may_store};
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::deletion::is_dry_run;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::{empty, full};
use virtual_cluster::roles::Role;

/// The maximum size of a ClusterRole: its rules, labels and annotations, in bytes of JSON. The agent keeps all
/// ClusterRoles of a virtual cluster in memory, to aggregate them. Kubernetes' own roles have up to about ten thousand
/// bytes.
const MAX_BYTES: usize = 512 << 10;

/// The refusal of a write to one of Kubernetes' own roles.
const SHARED: &str =
    "all virtual clusters of the host share this role of Kubernetes; create a ClusterRole with another name";

/// Handles a request for ClusterRoles.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    if request.subresource().is_some() {
        return Err(Status::path_not_found().into());
    }
    match (request.verb(), request.path_name()) {
        (Verb::List | Verb::Watch | Verb::DeleteCollection, None) => role_collection(call, request, body),
        (Verb::Get | Verb::List | Verb::Watch, Some(name)) => read_role(call, request, name),
        (Verb::Create, None) => {
            let own = new_name(call, request, &body.bytes())?;
            if call.api.mapping.is_shared_role(&own.name) {
                return Err(Status::already_exists(request.group_resource(), &own.name).into());
            }
            write_role(call, request, &own.name, &request.path().build(), body).await
        }
        (Verb::Update | Verb::Patch | Verb::Delete, Some(name)) if call.api.mapping.is_shared_role(name) => {
            Err(forbidden(request, SHARED))
        }
        (Verb::Update | Verb::Patch, Some(name)) => {
            let path = role_path(call, request, name)?;
            write_role(call, request, name, &path, body).await
        }
        (Verb::Delete, Some(name)) => {
            let path = upstream::target(&role_path(call, request, name)?, call.api.info.query());
            let mut upstream = upstream::request(&call.api, Method::DELETE, &path, As::Agent, full(body.bytes()))?;
            upstream::readable(&call.api, &mut upstream)?;
            let transform =
                ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
            let mut plan = Plan::new(&call.api, upstream, transform);
            plan.written = (!is_dry_run(call, &body.bytes())?).then_some(WrittenRbac::Role);
            Ok(plan)
        }
        _ => Err(Status::method_not_allowed_here().into()),
    }
}

/// The path of a ClusterRole on the host.
fn role_path(call: &Undecided<'_>, request: &ResourceRequest<'_>, name: &str) -> Result<String, Refusal> {
    let missing = || Refusal::from(Status::not_found(request.group_resource(), name));
    if name.starts_with(RESERVED) {
        let is_write = matches!(request.verb(), Verb::Update | Verb::Patch);
        return Err(if is_write { reserved(group_kind(request), name) } else { missing() });
    }
    let host = call.api.mapping.role(name).map_err(|_| missing())?;
    let segment = SegmentName::new(host).map_err(|_| missing())?;
    Ok(request.path_with(None, Some(&segment)))
}

fn read_role(call: &Undecided<'_>, request: &ResourceRequest<'_>, name: &str) -> Result<Box<Plan>, Refusal> {
    let path = role_path(call, request, name)?;
    let listed = request.verb() != Verb::Get;
    let query = if listed { list_query(call, request, None)? } else { call.api.info.query().borrowed().into_owned() };
    let mut upstream = upstream::request(&call.api, Method::GET, &upstream::target(&path, &query), As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = if listed {
        list_transform(call, request, program(request), Filter::ByRole)?
    } else {
        ResponseTransform::Object { program: program(request), filter: Filter::ByRole, only: None }
    };
    Ok(Plan::new(&call.api, upstream, transform))
}

/// A list or watch of the cluster's own and shared roles, or a deletion of its own. The agent applies the label
/// selector to lists and watches: on the host, own roles have other labels than shared ones, and no selector
/// matches exactly both.
fn role_collection(call: &Undecided<'_>, request: &ResourceRequest<'_>, body: &Body) -> Result<Box<Plan>, Refusal> {
    let mut query = list_query(call, request, None)?;
    let bad = |error: String| Refusal::from(Status::bad_request(error));
    let options = ListOptions::parse(call.api.info.query())?;
    let (mut selecting, mut sent) = (None, empty());
    if request.verb() == Verb::DeleteCollection {
        let selector: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
        sent = full(body.bytes());
        let own = selector.map_keys(parked).map_err(|error| bad(error.to_string()))?.and(call.api.own_label());
        query.set("labelSelector", &own.to_string());
    } else {
        query.remove("labelSelector");
        selecting = Some(evaluated_selector(&options)?).filter(|selector| !selector.is_empty());
    }
    let target = upstream::target(&request.path().build(), &query);
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, sent)?;
    upstream::readable(&call.api, &mut upstream)?;
    let mut plan = Plan::new(&call.api, upstream, list_transform(call, request, program(request), Filter::ByRole)?);
    plan.selecting = selecting;
    plan.written =
        (request.verb() == Verb::DeleteCollection && !is_dry_run(call, &body.bytes())?).then_some(WrittenRbac::Role);
    Ok(plan)
}

async fn write_role(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &str,
    path: &str,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let mut tried = try_write(call, request, path, &body.bytes()).await?;
    let size = size(&tried.result);
    if size > MAX_BYTES {
        let message = format!("this ClusterRole has {size} bytes, and the limit is {MAX_BYTES}; split it into several");
        return Err(Status::request_entity_too_large(&message).into());
    }
    let (roles, cluster) = (call.api.cluster.roles(), &call.api.cluster.name);
    let room = roles.has_room(cluster, name, Role::of(&tried.result).weight);
    room.map_err(|full| forbidden(request, &full.to_string()))?;
    let is_dry_run = is_dry_run(call, &body.bytes())?;
    if is_dry_run {
        // It stores nothing.
    } else if tried.is_new {
        may_store(call, request, size)?;
    } else if tried.result["metadata"]["deletionTimestamp"].is_null() {
        may_grow(call, request, size)?;
    }
    let host = call.api.host_role(name);
    let aggregates =
        !tried.result["metadata"]["annotations"][AGGREGATION_ANNOTATION].is_null() || roles.aggregates(cluster, name);
    let role = WrittenRole { host: &host, name, rules: &tried.result["rules"], aggregates };
    may_grant(call, request, &role).await?;
    may_make(call, request, &host, tried.is_new).await?;
    upstream::readable(&call.api, &mut tried.request)?;
    let transform = ResponseTransform::Object { program: program(request), filter: Filter::ByRole, only: None };
    let mut plan = Plan::new(&call.api, tried.request, transform);
    plan.replan = tried.replan;
    plan.written = (!is_dry_run).then_some(WrittenRbac::Role);
    Ok(plan)
}

/// The size of a ClusterRole, without fields that the host adds.
fn size(role: &Value) -> usize {
    let metadata = &role["metadata"];
    [&role["rules"], &metadata["labels"], &metadata["annotations"]].map(|part| part.to_string().len()).iter().sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_role_is_that_of_what_clients_write() {
        let text = "x".repeat(1000);
        let sized = |rules: Value, metadata: Value| size(&json!({"rules": rules, "metadata": metadata}));
        let bare = sized(json!([]), json!({"labels": {}, "annotations": {}, "managedFields": [text]}));
        assert_eq!(bare, "[]{}{}".len());
        for (rules, metadata) in [
            (json!([text]), json!({"labels": {}, "annotations": {}})),
            (json!([]), json!({"labels": {"a": text}, "annotations": {}})),
            (json!([]), json!({"labels": {}, "annotations": {"a": text}})),
        ] {
            assert!((1000..1020).contains(&sized(rules, metadata)));
        }
    }
}
