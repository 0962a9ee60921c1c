//! ClusterRoleBindings: RoleBindings in the root namespace.

use http::Method;
use kube_wire::gvr::GroupKind;
use kube_wire::name::SegmentName;
use kube_wire::request_info::ResourcePath;
use kube_wire::selector::LabelSelector;
use kube_wire::status::{CauseType, FieldError};
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::view::Filter;
use serde_json::Value;

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::rbac::attempt;
use crate::exchange::classes::rbac::try_write::{RESERVED, may_make, new_name, reserved, try_write};
use crate::exchange::kinds::{RBAC, group_kind, program, segment};
use crate::exchange::plan::{Plan, WrittenRbac};
use crate::exchange::query::{list_query, list_transform};
use crate::exchange::refusals::forbidden;
use crate::exchange::rights::has_room;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::exchange::write::deletion::is_dry_run;
use crate::refusal::Refusal;
use crate::translate::ResponseTransform;
use host_client::{empty, full};
use virtual_cluster::provisioner::{CLUSTER_ADMIN, Growth, INTERNAL_LABEL, PROTECTED_LABEL};

/// The maximum number of subjects of a ClusterRoleBinding. Each namespace has a copy of all subjects. A larger binding
/// from before this limit can be changed if it does not grow.
const MAX_SUBJECTS: usize = 2_000;

/// The maximum size of a ClusterRoleBinding, in bytes of JSON: that of a ClusterRole.
const MAX_BYTES: usize = 512 << 10;

/// The refusal of a write to the administrators' binding.
const PROTECTED: &str = "it grants the administrators of this virtual cluster their rights, and cannot be changed";

/// Handles a request for ClusterRoleBindings.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    if request.subresource().is_some() {
        return Err(Status::path_not_found().into());
    }
    let is_reserved = request.path_name().is_some_and(|name| name.starts_with(RESERVED));
    match (request.verb(), request.path_name()) {
        (Verb::Update | Verb::Patch, Some(name)) if is_reserved => Err(reserved(group_kind(request), name)),
        (_, Some(name)) if is_reserved => Err(Status::not_found(request.group_resource(), name).into()),
        (Verb::List | Verb::Watch, _) | (Verb::Get, Some(_)) => read_bindings(call, request),
        (Verb::Create, None) => {
            let own = new_name(call, request, &body.bytes())?;
            write_binding(call, request, &own.name, body).await
        }
        (Verb::Update | Verb::Patch | Verb::Delete, Some(CLUSTER_ADMIN)) => Err(forbidden(request, PROTECTED)),
        (Verb::Update | Verb::Patch, Some(name)) => write_binding(call, request, name, body).await,
        (Verb::Delete, Some(name)) => {
            let target = upstream::target(&binding_path(call, request)?, call.api.info.query());
            let mut upstream = upstream::request(&call.api, Method::DELETE, &target, As::Agent, full(body.bytes()))?;
            upstream::readable(&call.api, &mut upstream)?;
            let transform =
                ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
            let mut plan = Plan::new(&call.api, upstream, transform);
            plan.written = (!is_dry_run(call, &body.bytes())?).then(|| WrittenRbac::Binding(name.to_owned()));
            Ok(plan)
        }
        (Verb::DeleteCollection, None) => {
            let kept = format!("!{PROTECTED_LABEL},!{INTERNAL_LABEL}").parse().expect("a constant selector");
            let query = list_query(call, request, Some(&kept))?;
            let target = upstream::target(&binding_path(call, request)?, &query);
            let mut upstream = upstream::request(&call.api, Method::DELETE, &target, As::Agent, full(body.bytes()))?;
            upstream::readable(&call.api, &mut upstream)?;
            let transform = list_transform(call, request, program(request), Filter::Everything)?;
            let mut plan = Plan::new(&call.api, upstream, transform);
            plan.written = (!is_dry_run(call, &body.bytes())?).then_some(WrittenRbac::Bindings);
            Ok(plan)
        }
        _ => Err(Status::method_not_allowed_here().into()),
    }
}

/// The path on the host for a request for ClusterRoleBindings.
fn binding_path(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<String, Refusal> {
    let missing = |_| Status::not_found(request.group_resource(), request.path_name().unwrap_or_default());
    let name = request.path_name().map(|name| SegmentName::new(name.to_owned())).transpose().map_err(missing)?;
    let root = Some(segment(&call.api.cluster.root));
    Ok(ResourcePath { namespace: root, resource: "rolebindings", name, ..request.path() }.build())
}

fn read_bindings(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Box<Plan>, Refusal> {
    let listed = request.verb() != Verb::Get;
    let query = if listed {
        let shown: LabelSelector = format!("!{INTERNAL_LABEL}").parse().expect("a constant selector");
        list_query(call, request, Some(&shown))?
    } else {
        call.api.info.query().borrowed().into_owned()
    };
    let target = upstream::target(&binding_path(call, request)?, &query);
    let mut upstream = upstream::request(&call.api, call.api.info.method().clone(), &target, As::Agent, empty())?;
    upstream::readable(&call.api, &mut upstream)?;
    let transform = if listed {
        list_transform(call, request, program(request), Filter::Everything)?
    } else {
        ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None }
    };
    Ok(Plan::new(&call.api, upstream, transform))
}

async fn write_binding(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &str,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let path = binding_path(call, request)?;
    let mut tried = try_write(call, request, &path, &body.bytes()).await?;
    let errors = errors(&tried.result);
    if !errors.is_empty() {
        let kind = GroupKind { group: RBAC, kind: "ClusterRoleBinding" };
        return Err(Status::invalid(kind, name, &errors).into());
    }
    if let Some(message) = excess(&tried.result)
        && (tried.is_new || call.services.provisioner.is_growth(&call.api.cluster.name, &tried.result))
    {
        return Err(Status::request_entity_too_large(&message).into());
    }
    attempt::may_bind(call, request, name, &tried.result).await?;
    may_make(call, request, name, tried.is_new).await?;
    has_room(call, request, Growth::Binding(&tried.result))?;
    upstream::readable(&call.api, &mut tried.request)?;
    let transform = ResponseTransform::Object { program: program(request), filter: Filter::Everything, only: None };
    let mut plan = Plan::new(&call.api, tried.request, transform);
    plan.replan = tried.replan;
    plan.written = if is_dry_run(call, &body.bytes())? {
        None
    } else if name.is_empty() {
        // The host generates another name than in the dry run.
        Some(WrittenRbac::Bindings)
    } else {
        Some(WrittenRbac::Binding(name.to_owned()))
    };
    Ok(plan)
}

/// The message if a binding is too large.
fn excess(binding: &Value) -> Option<String> {
    let subjects = &binding["subjects"];
    let count = subjects.as_array().map_or(0, Vec::len);
    if count > MAX_SUBJECTS {
        return Some(format!(
            "this ClusterRoleBinding has {count} subjects, and the limit is {MAX_SUBJECTS}; split it into several, or bind groups"
        ));
    }
    let bytes = subjects.to_string().len() + binding["roleRef"].to_string().len();
    (bytes > MAX_BYTES).then(|| {
        format!("this ClusterRoleBinding has {bytes} bytes, and the limit is {MAX_BYTES}; split it into several")
    })
}

/// The checks of `ValidateClusterRoleBinding` (pkg/apis/rbac/validation) that a RoleBinding does not get.
fn errors(binding: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = binding["roleRef"]["kind"].as_str().unwrap_or_default();
    if kind != "ClusterRole" {
        errors.push(FieldError {
            cause: CauseType::NotSupported,
            field: "roleRef.kind".to_owned(),
            value: Some(kind.to_owned()),
            detail: "supported values: \"ClusterRole\"".to_owned(),
        });
    }
    for (number, subject) in binding["subjects"].as_array().into_iter().flatten().enumerate() {
        let has_namespace = subject["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty());
        if subject["kind"] == "ServiceAccount" && !has_namespace {
            errors.push(FieldError::required(format!("subjects[{number}].namespace"), ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_is_bounded() {
        let subject = |name: &str| json!({"kind": "User", "name": name});
        let excess_of = |subjects: Vec<Value>| excess(&json!({"roleRef": {"name": "a"}, "subjects": subjects}));
        assert_eq!(excess_of(vec![subject("a"); MAX_SUBJECTS]), None);
        assert!(excess_of(vec![subject("a"); MAX_SUBJECTS + 1]).is_some_and(|excess| excess.contains("2001 subjects")));
        assert!(excess_of(vec![subject(&"a".repeat(MAX_BYTES))]).is_some_and(|excess| excess.contains("bytes")));
        assert_eq!(excess(&json!({"roleRef": {"name": "a"}})), None);
    }

    #[test]
    fn a_cluster_role_binding_asks_for_more() {
        let binding =
            |kind: &str, subject: Value| json!({"roleRef": {"kind": kind, "name": "a"}, "subjects": [subject]});
        let messages = |binding: &Value| errors(binding).iter().map(ToString::to_string).collect::<Vec<_>>();
        let account = |namespace: &str| json!({"kind": "ServiceAccount", "name": "a", "namespace": namespace});
        assert!(messages(&binding("ClusterRole", account("b"))).is_empty());
        assert!(messages(&binding("ClusterRole", json!({"kind": "User", "name": "a"}))).is_empty());
        assert!(messages(&json!({"roleRef": {"kind": "ClusterRole"}})).is_empty());
        assert_eq!(
            messages(&binding("Role", json!({"kind": "ServiceAccount", "name": "a"}))),
            [
                r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#,
                "subjects[0].namespace: Required value",
            ]
        );
    }
}
