//! HEAD: the head of the response to GET, if the host supports the method.
//!
//! kube-apiserver responds with 405 for its own resources, because go-restful routes by method. Custom resources are
//! served by verb (`crdHandler` in apiextensions-apiserver), and for `RequestInfo` HEAD is a `get`, so they support it.

use http::{Method, Request, Response, header};

use crate::exchange::call::Call;
use crate::exchange::classes::shared::stored::overlaid;
use crate::exchange::findings::Findings;
use crate::exchange::host::sample::send;
use crate::exchange::plan::Plan;
use crate::refusal::Refusal;
use crate::translate::{ShownBody, Upstream, transform_response, warnings};
use host_client::{HostBody, RequestBody, empty};

/// The same request with the method GET.
pub(super) fn as_get(head: &Request<RequestBody>) -> Request<RequestBody> {
    let mut get = Request::new(empty());
    *get.method_mut() = Method::GET;
    *get.uri_mut() = head.uri().clone();
    get.headers_mut().clone_from(head.headers());
    get
}

/// The host's response to HEAD as the client may see it.
///
/// It has no body, so it does not show whether the object belongs to the cluster, or how long it is with virtual
/// names. So the agent reads the object from the host, by `get`.
pub(super) async fn complete(
    call: &Call<'_>,
    plan: Box<Plan>,
    findings: &Findings,
    get: Request<RequestBody>,
    head: Response<HostBody>,
) -> Result<Response<ShownBody>, Refusal> {
    let (mut parts, _) = head.into_parts();
    if !parts.status.is_success() {
        warnings(&call.view(call.api.mapping.clone(), findings), &mut parts.headers);
        // This is the length of a Status with host names.
        parts.headers.remove(header::CONTENT_LENGTH);
        return Ok(Response::from_parts(parts, ShownBody::none()));
    }
    let Plan { transform, mapping, not_found, .. } = *plan;
    let response = send(call, get).await?.map(Upstream::Stream);
    let response = overlaid(call, &transform, response);
    let answer = transform_response(
        &call.view(mapping, findings),
        transform,
        || not_found.status(&call.api),
        response,
        call.answer_collector(),
    )
    .await?;
    Ok(answer.map(|_| ShownBody::none()))
}
