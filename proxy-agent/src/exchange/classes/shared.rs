//! Objects that virtual clusters share (`virtual_cluster::shared`), read and written through one cluster.
//!
//! | request | on the host, as the agent |
//! |---|---|
//! | read | unchanged; the response shows the overlay, and selectors match the overlay |
//! | create or apply of an object that does not exist | a dry run, then POST with the overlay |
//! | create or apply of an object of others | a dry run; PUT of the overlay if the specification is the same |
//! | update, patch | a dry run; PUT of the overlay, and of the rest if that is [agreed](virtual_cluster::shared::Agreement) |
//! | delete | PUT without the overlay; DELETE if no other cluster has one |
//! | deletecollection | the same for each selected object; then a list |
//! | update, patch of a definition's status | a dry run; PUT if no other cluster has the definition |
//!
//! Every write has the resourceVersion that was read. After a conflict, the request is planned again.
//!
//! Reading order: here, `read`, `requests`, `wanted` (what a client wants), `write`, `redefined`, `stored`, `leave`, `collection`, `status`.

mod applied;
mod collection;
pub(crate) mod defined;
pub(crate) mod leave;
mod names;
mod read;
pub(crate) mod redefined;
mod requests;
mod status;
pub(crate) mod stored;
mod wanted;
mod write;

use kube_wire::{ResourceRequest, Verb};

use crate::exchange::api_request::As;
use crate::exchange::body::Body;
use crate::exchange::classes::renamed::may_write_itself;
use crate::exchange::classes::shared::collection::leave_collection;
use crate::exchange::classes::shared::leave::leave_shared;
use crate::exchange::classes::shared::read::read_shared;
use crate::exchange::classes::shared::requests::Written;
use crate::exchange::classes::shared::status::write_status;
use crate::exchange::classes::shared::write::write_shared;
use crate::exchange::host::error::{Destination, prefer_host_error};
use crate::exchange::plan::Plan;
use crate::exchange::refusals::forbidden;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;
use virtual_cluster::policy::{self, Class, Custom};
use virtual_cluster::shared::Kind;

/// Handles a request that RBAC in the root namespace allows.
pub(crate) async fn decide(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    body: &Body,
) -> Result<Box<Plan>, Refusal> {
    let place = request.path().build();
    let planned = match writes_shared(call, request).await? {
        None => read_shared(call, request),
        Some(_) if request.subresource().is_some() => write_status(call, request, body).await,
        Some(written) if request.verb() == Verb::DeleteCollection => {
            leave_collection(call, request, written, body).await
        }
        Some(written) if request.verb() == Verb::Delete => leave_shared(call, request, written, body).await,
        Some(written) => write_shared(call, request, written, body).await,
    };
    match planned {
        Ok(plan) => Ok(plan),
        Err(refusal) => {
            let upstream =
                Destination { path: &place, identity: As::Agent, namespace: None, mapping: &call.api.mapping };
            Err(prefer_host_error(call, request, &upstream, &body.bytes(), refusal).await)
        }
    }
}

/// The kind of object that is written; `None` for a read.
async fn writes_shared(call: &Undecided<'_>, request: &ResourceRequest<'_>) -> Result<Option<Written>, Refusal> {
    let is_read = request.verb().is_read();
    if is_read && request.subresource().is_none_or(|subresource| subresource == "status") {
        return Ok(None);
    }
    let written = match call.api.custom {
        Some(custom) => (custom == Custom::Shared).then_some(Written::Custom),
        None => Kind::of(request.group_resource()).map(Written::Kind),
    };
    let is_listed = call.services.shared.load().lets_write(request.group_resource());
    let is_there = match request.subresource() {
        None => true,
        Some("status") => written == Some(Written::Kind(Kind::CustomResourceDefinition)),
        Some(_) => false,
    };
    let Some(written) = written.filter(|_| is_listed && !is_read && is_there) else {
        return Err(forbidden(request, policy::read_only(Class::Shared)));
    };
    if written == Written::Custom {
        may_write_itself(call, request).await?;
    }
    Ok(Some(written))
}

#[cfg(test)]
mod tests;
