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
use http::{Method, Response, StatusCode};
use kube_wire::{ResourceRequest, Status};
use rewrite::{HostNamespace, Mapping, schema};

use super::ApiRequest;
use super::plan::As;
use crate::refusal::{DryRunScope, Refusal, Unmapped};
use crate::translate::{as_cluster_binding, encoding, status};
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, RequestBody, empty, full};
use virtual_cluster::share::large_objects::Size;

/// `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`.
const MISMATCH: &str = "the namespace of the provided object does not match the namespace sent on the request";

/// Where a request goes upstream.
pub(super) struct Upstream<'u> {
    /// In host names.
    pub(super) path: &'u str,
    /// As whom.
    pub(super) identity: As,
    /// The namespace in which the host authorises the caller; `None` if the agent has checked this before.
    pub(super) namespace: Option<&'u HostNamespace>,
    /// The mapping for the names in the response.
    pub(super) mapping: &'u Mapping,
}

impl ApiRequest<'_> {
    /// Replaces `refusal` by the host's error for the same request, if the host refuses it too.
    pub(super) async fn prefer_host_error(
        &self,
        request: &ResourceRequest<'_>,
        upstream: &Upstream<'_>,
        body: &Bytes,
        refusal: Refusal,
    ) -> Refusal {
        let Refusal::Unmapped(unmapped) = refusal else { return refusal };
        let Unmapped { status, scope } = *unmapped;
        let body = match scope {
            DryRunScope::AnyServer | DryRunScope::KubeApiserver if self.body_cost(body).size == Size::Large => {
                return self.may_not(request, upstream).await.unwrap_or_else(|| status.into());
            }
            DryRunScope::Skip => return self.may_not(request, upstream).await.unwrap_or_else(|| status.into()),
            DryRunScope::KubeApiserver if schema::kind_of(request.group(), request.resource()).is_none() => {
                return self.may_not(request, upstream).await.unwrap_or_else(|| status.into());
            }
            DryRunScope::AnyServer | DryRunScope::KubeApiserver => full(body.clone()),
            DryRunScope::WithoutBody => empty(),
        };
        match self.dry_run(request, upstream, body).await {
            // The path has host names and the body virtual names, so the namespaces always differ.
            Ok(Some(said)) if said.message == MISMATCH => status.into(),
            Ok(Some(said)) => said.into(),
            Ok(None) => status.into(),
            Err(refusal) => refusal,
        }
    }

    /// The refusal if the caller has no right to do this. An API server checks this first.
    async fn may_not(&self, request: &ResourceRequest<'_>, upstream: &Upstream<'_>) -> Option<Refusal> {
        let attributes = self.attributes_in(request, upstream.namespace?);
        self.outside(self.services.authz.demand(&self.mapping, &self.caller, &attributes))
            .await
            .err()
            .map(Refusal::from)
    }

    /// The host's refusal of a dry run of this request. A delete is sent without its body: the body's DeleteOptions
    /// would replace the parameter that makes it a dry run (`DeleteResource` in apiserver's `handlers/delete.go`).
    pub(super) async fn dry_run(
        &self,
        about: &ResourceRequest<'_>,
        upstream: &Upstream<'_>,
        body: RequestBody,
    ) -> Result<Option<Status>, Refusal> {
        let mut query = self.info.query().borrowed();
        // An existing parameter is `All`; the host refuses any other value before it does anything.
        if !query.contains("dryRun") {
            query.append("dryRun", "All");
        }
        let target = Self::target(upstream.path, &query);
        let body = if self.info.method() == Method::DELETE { empty() } else { body };
        let mut request = self.upstream(self.info.method().clone(), &target, upstream.identity, body)?;
        // If the client accepts no readable form, the host says which it supports.
        let _ = self.readable(&mut request);
        let response = self.send(request).await?;
        let status = response.status();
        if status.is_success() || (upstream.identity == As::Agent && !is_about_the_request(status)) {
            Ok(None)
        } else {
            Ok(self.status(about, upstream.mapping, response).await)
        }
    }

    /// The Status in a response, in virtual names. `None` if the response has none.
    pub(super) async fn status(
        &self,
        request: &ResourceRequest<'_>,
        mapping: &Mapping,
        response: Response<HostBody>,
    ) -> Option<Status> {
        let (parts, body) = response.into_parts();
        let (length, body) = self.outside(self.collector().collect_or_drain(body, MAX_OBJECT)).await;
        if !parts.status.is_success() {
            self.count_refusal_of(parts.status, length);
        }
        let body = body.ok()?;
        let program = self.program(request);
        let said = status(&self.view(mapping.clone()), &program, encoding(&parts.headers)?, &body);
        if program.is_of_cluster_bindings() { said.map(as_cluster_binding) } else { said }
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
