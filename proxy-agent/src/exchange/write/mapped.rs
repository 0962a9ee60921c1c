//! Request bodies in host names.

use bytes::Bytes;
use kube_wire::status::FieldError;
use kube_wire::{ResourceRequest, Status, Verb};
use rewrite::request::{Report, Request};
use rewrite::{Program, VirtualNamespace};

use crate::exchange::kinds::{group_kind, program};
use crate::exchange::undecided::Undecided;
use crate::exchange::write::generate;
use crate::exchange::write::mapper::new_namespace_mapper;
use crate::exchange::write::namespace::whole_mapper;
use crate::exchange::write::node_ports::object_with_node_ports;
use crate::exchange::write::object::{Object, map_json, received};
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use host_client::{RequestBody, empty, full};

/// The body for the host.
pub(crate) async fn mapped_body(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    namespace: Option<&VirtualNamespace>,
    body: &Bytes,
) -> Result<RequestBody, Refusal> {
    match request.verb() {
        // DeleteOptions have no names to map, only a uid and a resourceVersion, in any encoding.
        Verb::Delete | Verb::DeleteCollection => Ok(full(body.clone())),
        _ if body.is_empty() => Ok(empty()),
        _ => {
            let object = received(call, body)?;
            if request.is_namespace() && request.subresource().is_none() {
                same_name(request, &object.name()?.name)?;
            }
            let mapper = whole_mapper(call, request, namespace).await?;
            map_object(call, request, &mapper, &object).await.map(full)
        }
    }
}

/// The body of a new Namespace for the host, and the virtual name.
pub(crate) async fn namespace_body(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Bytes,
) -> Result<(RequestBody, VirtualNamespace), Refusal> {
    let object = received(call, body)?;
    let own = object.name()?;
    if let Some(name) = generate::name(&call.api.mapping, &own)? {
        let mapper = new_namespace_mapper(call).with_generated_name(name.clone());
        return Ok((full(map_object(call, request, &mapper, &object).await?), name));
    }
    let mapped = map_object(call, request, &new_namespace_mapper(call), &object).await?;
    let name = VirtualNamespace::new(&own.name).map_err(|_| {
        let status = Status::bad_request("metadata.name is not the name of a namespace");
        Unmapped::refusal(status, DryRunScope::KubeApiserver)
    })?;
    Ok((full(mapped), name))
}

/// Maps an object, and checks that it binds pods only to the cluster's own nodes, which the engine cannot check.
async fn map_object(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    mapper: &Request,
    object: &Object,
) -> Result<Bytes, Refusal> {
    let name = match request.path_name() {
        Some(name) => name.to_owned(),
        // If the object is invalid, the engine returns the error.
        None => object.name().map(|own| own.name).unwrap_or_default(),
    };
    let settled = object_with_node_ports(call, object);
    let (mapped, report) =
        settled.as_ref().unwrap_or(object).map(request, &name, &call.api.program(request), mapper)?;
    call.note(&report);
    own_nodes(call, request, &name, &report).await?;
    Ok(mapped)
}

/// Maps JSON that is not the body of a client, and checks its nodes.
pub(crate) async fn map_checked(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    program: &Program,
    mapper: Request,
    json: &Bytes,
) -> Result<Bytes, Refusal> {
    let name = request.path_name().unwrap_or_default();
    let (mapped, report) = map_json(request, name, program, &mapper, json)?;
    call.note(&report);
    own_nodes(call, request, name, &report).await?;
    Ok(mapped)
}

/// Refuses nodes that are not the cluster's own. `name` is the name of the object that binds pods.
pub(crate) async fn own_nodes(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    name: &str,
    report: &Report,
) -> Result<(), Refusal> {
    for node in &report.nodes {
        if !call.outside(call.services.nodes.belongs(call.api.cluster, node)).await? {
            let field = program(request).node_field().unwrap_or_else(|| "spec.nodeName".to_owned());
            let error = FieldError::invalid(field, node, "not a node of this cluster");
            let status = Status::invalid(group_kind(request), name, &[error]);
            return Err(Unmapped::refusal(status, DryRunScope::Skip));
        }
    }
    Ok(())
}

/// Refuses a Namespace with another name than in the path. The host would do so in host names, some of which belong to
/// no virtual cluster.
pub(crate) fn same_name(request: &ResourceRequest<'_>, own: &str) -> Result<(), Refusal> {
    let name = request.path_name().unwrap_or_default();
    if own == name {
        return Ok(());
    }
    // `checkName` in apiserver's `handlers/rest.go`.
    let message = format!("the name of the object ({own}) does not match the name on the URL ({name})");
    Err(Unmapped::refusal(Status::bad_request(message), DryRunScope::KubeApiserver))
}
