//! The host's own words about a request that cannot be mapped.
//!
//! What the engine does not understand the host will hardly take either, and why not it says as only an API server can:
//! first that the caller may not, then that the method or the media type is wrong, then that a parameter is, then that
//! the body is, down to the text of Go's decoders. So it is asked: as the same identity, with the request as it came, as
//! a dry run (KEP-576), which stores nothing. Only a refusal is shown. If the host would take the request, nothing has
//! happened, and it is refused here.
//!
//! Aggregated API servers need not know dry runs. They are shown only what no server can take: see [`Ask`]. The host is not
//! asked about a large body either, which would cost it as much as a body that it takes.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kube_wire::{ResourceRequest, Status};
use rewrite::{HostNamespace, Mapping, schema};

use super::Asked;
use super::plan::As;
use crate::host::{HostBody, RequestBody, empty, full};
use crate::refusal::{Ask, Refusal, Unmapped};
use crate::translate::{MAX_OBJECT, as_cluster_binding, encoding, status};
use crate::turns::SMALL;

/// `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver's `registry/rest/meta.go`.
const MISMATCH: &str = "the namespace of the provided object does not match the namespace sent on the request";

/// Where a request goes upstream.
pub(super) struct Upstream<'u> {
    /// In host names.
    pub(super) path: &'u str,
    /// As whom.
    pub(super) identity: As,
    /// Where the caller is authorised by the host; `None` if that was asked before.
    pub(super) namespace: Option<&'u HostNamespace>,
    /// The names that its answer is shown with.
    pub(super) mapping: &'u Mapping,
}

impl Asked<'_> {
    /// What is said of a request that `refusal` does not let through.
    pub(super) async fn in_own_words(
        &self,
        request: &ResourceRequest<'_>,
        upstream: &Upstream<'_>,
        body: &Bytes,
        refusal: Refusal,
    ) -> Refusal {
        let Refusal::Unmapped(unmapped) = refusal else { return refusal };
        let Unmapped { status, ask } = *unmapped;
        let body = match ask {
            Ask::Anybody | Ask::KubeApiserver if body.len() > SMALL => {
                return self.may_not(request, upstream).await.unwrap_or_else(|| status.into());
            }
            Ask::Nobody => return self.may_not(request, upstream).await.unwrap_or_else(|| status.into()),
            Ask::KubeApiserver if schema::kind_of(request.group(), request.resource()).is_none() => {
                return self.may_not(request, upstream).await.unwrap_or_else(|| status.into());
            }
            Ask::Anybody | Ask::KubeApiserver => full(body.clone()),
            Ask::WithoutBody => empty(),
        };
        match self.dry_run(request, upstream, body).await {
            // Every namespace in the body is another one than the path's, which is in host names.
            Ok(Some(said)) if said.message == MISMATCH => status.into(),
            Ok(Some(said)) => said.into(),
            Ok(None) => status.into(),
            Err(refusal) => refusal,
        }
    }

    /// That the caller may not do this at all, which an API server says first.
    async fn may_not(&self, request: &ResourceRequest<'_>, upstream: &Upstream<'_>) -> Option<Refusal> {
        let attributes = self.attributes_in(request, upstream.namespace?);
        self.parts.access.demand(&self.mapping, &self.caller, &attributes).await.err().map(Refusal::from)
    }

    /// The host's refusal of a request that must not happen. A delete goes without its body, which would count in the
    /// place of the parameter that makes it a dry run (`DeleteResource` in apiserver's `handlers/delete.go`).
    pub(super) async fn dry_run(
        &self,
        about: &ResourceRequest<'_>,
        upstream: &Upstream<'_>,
        body: RequestBody,
    ) -> Result<Option<Status>, Refusal> {
        let mut query = self.info.query().borrowed();
        // A parameter that is there is `All`, or else is refused by the host before anything is done.
        if !query.contains("dryRun") {
            query.append("dryRun", "All");
        }
        let target = Self::target(upstream.path, &query);
        let body = if self.info.method() == Method::DELETE { empty() } else { body };
        let mut request = self.upstream(self.info.method().clone(), &target, upstream.identity, body)?;
        // Otherwise the host says what it accepts.
        let _ = self.readable(&mut request);
        let response = self.parts.host.send(request).await?;
        let status = response.status();
        if status.is_success() || (upstream.identity == As::Agent && !is_about_the_request(status)) {
            Ok(None)
        } else {
            Ok(self.status(about, upstream.mapping, response).await)
        }
    }

    /// The Status in an answer, in virtual names; `None` if there is none.
    pub(super) async fn status(
        &self,
        request: &ResourceRequest<'_>,
        mapping: &Mapping,
        response: Response<HostBody>,
    ) -> Option<Status> {
        let (parts, body) = response.into_parts();
        let body = self.collector().collect(body, MAX_OBJECT).await.ok()?;
        let program = self.program(request);
        let said = status(&self.view(mapping.clone()), &program, encoding(&parts.headers)?, &body);
        if program.is_of_cluster_bindings() { said.map(as_cluster_binding) } else { said }
    }
}

/// Whether a refusal follows from the request alone. The agent sees all of the host: that a name is taken there, or that
/// something is not found, is nothing to its clients.
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
