//! Kubernetes' own error message for a request that the agent cannot map.
//!
//! The host usually refuses what the engine does not understand. It checks the rights of the caller first, then the
//! method and the media type, then the parameters, then the body, and its message contains the text of Go's decoders.
//! So the agent sends the request to the host unchanged, with the same identity, as a dry run (KEP-576), which stores
//! nothing. It passes on only a refusal. If the host accepts the dry run, the agent refuses the request itself.
//!
//! Aggregated API servers need not support dry runs. They get only what no server can accept: see [`DryRunScope`]. The
//! agent does not send a large body: its dry run costs the host as much as an accepted body.

use bytes::Bytes;
use http::{Method, StatusCode};
use kube_wire::{ResourceRequest, Status};
use rewrite::{HostNamespace, Mapping, schema};

use crate::exchange::api_request::As;
use crate::exchange::cost::body_cost;
use crate::exchange::host::sample::send_to_decide;
use crate::exchange::host::status::status_of;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use host_client::{RequestBody, empty, full};
use virtual_cluster::share::large_objects::Size;

/// `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`.
const MISMATCH: &str = "the namespace of the provided object does not match the namespace sent on the request";

/// Where a request goes.
pub(crate) struct Destination<'u> {
    /// In host names.
    pub(crate) path: &'u str,
    /// As whom.
    pub(crate) identity: As,
    /// The namespace in which the host authorises the caller; `None` if the agent has checked this before.
    pub(crate) namespace: Option<&'u HostNamespace>,
    /// The mapping for the names in the response.
    pub(crate) mapping: &'u Mapping,
}

/// Replaces `refusal` by the host's error for the same request, if the host refuses it too.
pub(crate) async fn prefer_host_error(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    destination: &Destination<'_>,
    body: &Bytes,
    refusal: Refusal,
) -> Refusal {
    let Refusal::Unmapped(unmapped) = refusal else { return refusal };
    let Unmapped { status, scope } = *unmapped;
    let body = match scope {
        DryRunScope::AnyServer | DryRunScope::KubeApiserver if body_cost(call, body).size == Size::Large => {
            return may_not(call, request, destination).await.unwrap_or_else(|| status.into());
        }
        DryRunScope::Skip => return may_not(call, request, destination).await.unwrap_or_else(|| status.into()),
        DryRunScope::KubeApiserver if schema::kind_of(request.group(), request.resource()).is_none() => {
            return may_not(call, request, destination).await.unwrap_or_else(|| status.into());
        }
        DryRunScope::AnyServer | DryRunScope::KubeApiserver => full(body.clone()),
        DryRunScope::WithoutBody => empty(),
    };
    match dry_run(call, request, destination, body).await {
        // The path has host names and the body virtual names, so the namespaces always differ.
        Ok(Some(refusal)) if refusal.message == MISMATCH => status.into(),
        Ok(Some(refusal)) => refusal.into(),
        Ok(None) => status.into(),
        Err(refusal) => refusal,
    }
}

/// The refusal if the caller has no right to do this. An API server checks this first.
async fn may_not(
    call: &Undecided<'_>,
    request: &ResourceRequest<'_>,
    destination: &Destination<'_>,
) -> Option<Refusal> {
    let attributes = call.api.attributes_in(request, destination.namespace?);
    call.outside(call.services.authz.demand(&call.api.mapping, &call.api.caller, &attributes))
        .await
        .err()
        .map(Refusal::from)
}

/// The host's refusal of a dry run of this request. A delete is sent without its body: the body's DeleteOptions
/// would replace the parameter that makes it a dry run (`DeleteResource` in apiserver's `handlers/delete.go`).
pub(crate) async fn dry_run(
    call: &Undecided<'_>,
    about: &ResourceRequest<'_>,
    destination: &Destination<'_>,
    body: RequestBody,
) -> Result<Option<Status>, Refusal> {
    let mut query = call.api.info.query().borrowed();
    // An existing parameter is `All`; the host refuses any other value before it does anything.
    if !query.contains("dryRun") {
        query.append("dryRun", "All");
    }
    let target = upstream::target(destination.path, &query);
    let body = if call.api.info.method() == Method::DELETE { empty() } else { body };
    let mut request =
        upstream::request(&call.api, call.api.info.method().clone(), &target, destination.identity, body)?;
    // If the client accepts no readable form, the host says which it supports.
    let _ = upstream::readable(&call.api, &mut request);
    let response = send_to_decide(call, request).await?;
    let status = response.status();
    if status.is_success() || (destination.identity == As::Agent && !is_about_the_request(status)) {
        Ok(None)
    } else {
        Ok(status_of(call, about, destination.mapping, response).await)
    }
}

/// Whether a refusal follows from the request alone. The agent sees the whole host, so other refusals could disclose
/// what exists there.
fn is_about_the_request(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}
