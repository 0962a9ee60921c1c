//! The phase `decide`: what the host gets instead of this request, and how the client sees the response.
//!
//! Each class of resources has a module in [`classes`]. A decision about a write may read the object, and may send dry
//! runs. A decision about a read sends the host nothing but reviews, which are cached. Four kinds of reads are exceptions:
//!
//! - of a resource that the known discovery lacks: discovery is read again;
//! - of a custom resource whose definition the cluster does not see: the definition is read;
//! - of the `scale` of a renamed object: the object is read, because a Scale does not show its owner;
//! - with an `Accept` header that has no readable media type: the host gets a dry run, so that the client gets its error.

use std::pin::Pin;

use kube_wire::Target;

use crate::exchange::body::Body;
use crate::exchange::call::Call;
use crate::exchange::classes::{cluster_scoped, namespaced, non_resource, shared};
use crate::exchange::plan::Plan;
use crate::refusal::Refusal;

/// Decides about an authorised request.
///
/// Boxed, because otherwise the compiler cannot prove that the future is `Send` (rust-lang/rust#110338).
pub(super) fn decide<'p>(
    call: &'p Call<'_>,
    body: &'p Body,
) -> Pin<Box<dyn Future<Output = Result<Box<Plan>, Refusal>> + Send + 'p>> {
    Box::pin(async move {
        call.outside(shared::defined::defined(call)).await?;
        match call.api.info.target() {
            Target::NonResource(request) => non_resource::decide(call, request).await,
            Target::Resource(request) if request.namespace().is_some() && !request.is_namespace() => {
                namespaced::decide(call, request, body).await
            }
            Target::Resource(request) => cluster_scoped::decide(call, request, body).await,
        }
    })
}
