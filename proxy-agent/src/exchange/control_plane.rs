//! Statuses that direct the host's control plane, on a host that is not known to enforce admission policies.
//!
//! Elsewhere a policy of the host protects the fields in question, and the rest of these statuses stays writable
//! (`gate::policies`, which says why these). Without policies, whoever reaches the host's API server can write them; whoever
//! reaches only the endpoint cannot. The agent refuses the whole subresource: what a patch would store, only the host knows.

use kube_wire::{ResourceRequest, Verb};

use super::Asked;
use super::cluster_scoped::forbidden;
use crate::gate::Standing;
use crate::refusal::Refusal;

const WHY: &str = "the host cluster may not enforce the admission policies that protect the fields of this status on which its \
                   control plane acts; ask the operator of the host cluster";

impl Asked<'_> {
    /// Refuses a write of such a status.
    pub(super) fn demand_undirected(&self, request: &ResourceRequest<'_>) -> Result<(), Refusal> {
        if directs(request) && matches!(self.parts.gate.standing(), Standing::Open | Standing::Unverified) {
            return Err(forbidden(request, WHY));
        }
        Ok(())
    }
}

fn directs(request: &ResourceRequest<'_>) -> bool {
    matches!(request.verb(), Verb::Update | Verb::Patch)
        && request.subresource() == Some("status")
        && matches!(
            (request.group(), request.resource()),
            ("", "pods" | "services") | ("resource.k8s.io", "resourceclaims")
        )
}
