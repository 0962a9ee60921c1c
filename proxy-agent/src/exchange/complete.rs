//! What the agent does after the host has responded, and before the client gets the response.

use std::ops::ControlFlow;

use bytes::Bytes;
use http::{Response, StatusCode};
use kube_wire::Target;

use crate::exchange::attempts::End;
use crate::exchange::call::Call;
use crate::exchange::classes::namespaces::apply::{dry_run_applied, first_apply};
use crate::exchange::classes::namespaces::created::post_create;
use crate::exchange::classes::namespaces::secured::secured;
use crate::exchange::classes::rbac::in_force::put_in_force;
use crate::exchange::kinds::RBAC;
use crate::exchange::plan::{After, Plan};
use crate::exchange::write::node_ports::node_ports_given;
use crate::refusal::Refusal;
use crate::translate::Upstream;
use host_client::HostBody;

/// Completes what the plan has begun.
pub(super) async fn complete(
    call: &Call<'_>,
    plan: &mut Plan,
    response: Response<HostBody>,
) -> Result<End<Upstream>, Refusal> {
    note_write(call, response.status());
    note_own_write(call, response.status());
    if let Some(written) = plan.written.take() {
        Box::pin(put_in_force(call, written, response.status())).await;
    }
    match &plan.after {
        After::Nothing => Ok(ControlFlow::Break(response.map(Upstream::Stream))),
        // Boxed, so that the state of all other requests is small.
        after => Box::pin(follow(call, after, response)).await,
    }
}

/// Does what follows a response.
async fn follow(call: &Call<'_>, after: &After, response: Response<HostBody>) -> Result<End<Upstream>, Refusal> {
    let response = match after {
        After::PostCreate => post_create(call, response).await?,
        After::NodePorts => match node_ports_given(call, response).await? {
            ControlFlow::Break(response) => response,
            ControlFlow::Continue(cause) => return Ok(ControlFlow::Continue(cause)),
        },
        After::FirstApply(apply) => first_apply(call, apply, response).await?,
        After::DryRunApply => dry_run_applied(call, response)?,
        After::Labelled(path) => secured(call, path, response).await?,
        After::Nothing => response.map(Upstream::Stream),
        After::Created => created(response).map(Upstream::Stream),
        After::Advertised(advertised) => advertised.cut(response, call.answer_collector()).await?,
        After::Removed(body) => removed(response, body),
    };
    Ok(ControlFlow::Break(response))
}

/// A write of a role, a binding or a namespace invalidates cached decisions.
fn note_write(call: &Call<'_>, status: StatusCode) {
    let Target::Resource(request) = call.api.info.target() else { return };
    let decides = request.group() == RBAC || (request.group().is_empty() && request.resource() == "namespaces");
    if decides && status.is_success() && !request.verb().is_read() {
        call.services.authz.flush(&call.api.cluster.name);
    }
}

/// If the host refuses a write of the agent, the agent may have lost the right.
fn note_own_write(call: &Call<'_>, status: StatusCode) {
    let Target::Resource(request) = call.api.info.target() else { return };
    if status == StatusCode::FORBIDDEN && call.api.is_renamed() && !request.verb().is_read() {
        call.services.own_rights.forget(request.group_resource());
    }
}

/// The response 201 for an update that created the object for this cluster.
pub(super) fn created(mut response: Response<HostBody>) -> Response<HostBody> {
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// The response for an object that an update has removed from this cluster.
fn removed(response: Response<HostBody>, body: &Bytes) -> Response<Upstream> {
    if response.status().is_success() {
        response.map(|_| Upstream::Whole(body.clone()))
    } else {
        response.map(Upstream::Stream)
    }
}
