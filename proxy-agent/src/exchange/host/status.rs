//! The Status in a response of the host.

use http::Response;
use kube_wire::{ResourceRequest, Status};
use rewrite::Mapping;

use crate::exchange::cost::count_refusal_of;
use crate::exchange::undecided::Undecided;
use crate::translate::{as_cluster_binding, encoding, status};
use host_client::HostBody;
use host_client::collect::MAX_OBJECT;

/// The Status in a response, in virtual names. `None` if the response has none.
pub(crate) async fn status_of(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    mapping: &Mapping,
    response: Response<HostBody>,
) -> Option<Status> {
    let (parts, body) = response.into_parts();
    let (length, body) = call.outside(call.collector().collect_or_drain(body, MAX_OBJECT)).await;
    if !parts.status.is_success() {
        count_refusal_of(call, parts.status, length);
    }
    let body = body.ok()?;
    let program = call.api.program(request);
    let status = status(&call.view(mapping.clone()), &program, encoding(&parts.headers)?, &body);
    if program.is_of_cluster_bindings() { status.map(as_cluster_binding) } else { status }
}
