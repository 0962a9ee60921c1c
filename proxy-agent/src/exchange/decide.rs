//! The phase `decide`: what the host gets instead of this request, and how the client sees the response.
//!
//! Each class of resources has a module in [`classes`]. A decision about a write may read the object, and may send dry
//! runs. A decision about a read sends the host nothing but reviews, which are cached. Five kinds of reads are exceptions:
//!
//! - a watch of a restored virtual cluster ([`restored`]): the version of the host is read;
//! - of a resource that the known discovery lacks: discovery is read again;
//! - of a custom resource whose definition the cluster does not see: the definition is read;
//! - of the `scale` of a renamed object: the object is read, because a Scale does not show its owner;
//! - with an `Accept` header that has no readable media type: the host gets a dry run, so that the client gets its error.

use std::pin::Pin;

use kube_wire::Target;

use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::classes::{cluster_scoped, namespaced, non_resource, shared};
use crate::exchange::findings::Findings;
use crate::exchange::plan::Plan;
use crate::exchange::restored;
use crate::exchange::undecided::Undecided;
use crate::refusal::Refusal;

/// What the phase has decided.
pub(super) struct Decision {
    /// The plan, or the refusal of the agent.
    pub(super) plan: Result<Box<Plan>, Refusal>,
    /// What the response needs, also if it is a refusal.
    pub(super) findings: Findings,
}

/// Decides about an authorised request.
///
/// Boxed, because otherwise the compiler cannot prove that the future is `Send` (rust-lang/rust#110338).
pub(super) fn decide<'p>(call: &'p Call<'_>, body: &'p Body) -> Pin<Box<dyn Future<Output = Decision> + Send + 'p>> {
    Box::pin(async move {
        let undecided = Undecided::new(call);
        let plan = plan(&undecided, body).await;
        Decision { plan, findings: undecided.into_findings() }
    })
}

async fn plan(call: &Undecided<'_>, body: &Body) -> Result<Box<Plan>, Refusal> {
    call.outside(shared::defined::defined(call)).await?;
    restored::known_version(call).await?;
    match call.api.info.target() {
        Target::NonResource(request) => non_resource::decide(call, request).await,
        Target::Resource(request) if request.namespace().is_some() && !request.is_namespace() => {
            namespaced::decide(call, request, body).await
        }
        Target::Resource(request) => cluster_scoped::decide(call, request, body).await,
    }
}
