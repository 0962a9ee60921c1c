//! Statuses that direct the host's control plane, on a host that is not known to enforce admission policies.
//!
//! On other hosts, admission policies protect the relevant fields, and the rest of these statuses stays writable
//! (`virtual_cluster::admission_policies` explains which fields). Without policies, a token of a virtual cluster can
//! write these fields directly at the host, but not through the endpoint. The agent refuses the whole subresource,
//! because only the host knows what a patch would store.

use kube_wire::{ResourceRequest, Verb};

use crate::exchange::call::Call;
use crate::exchange::refusals::forbidden;
use crate::refusal::Refusal;
use virtual_cluster::admission_policies::PolicyState;

const WHY: &str = "the host cluster may not enforce the admission policies that protect the fields of this status on which its \
                   control plane acts; ask the operator of the host cluster";

/// Refuses a write of such a status.
pub(crate) fn demand_undirected(call: &Call<'_>, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
    if directs(request)
        && matches!(call.services.admission_policies.state(), PolicyState::Open | PolicyState::Unverified)
    {
        return Err(forbidden(request, WHY));
    }
    Ok(())
}

fn directs(request: &ResourceRequest<'_>) -> bool {
    matches!(request.verb(), Verb::Update | Verb::Patch)
        && request.subresource() == Some("status")
        && matches!(
            (request.group(), request.resource()),
            ("", "pods" | "services") | ("resource.k8s.io", "resourceclaims")
        )
}
