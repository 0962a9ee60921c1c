//! HEAD: the head of the response to GET, if the host supports the method.
//!
//! kube-apiserver responds with 405 for its own resources, because go-restful routes by method. Custom resources are
//! served by verb (`crdHandler` in apiextensions-apiserver), and for `RequestInfo` HEAD is a `get`, so they support it.

use http::{Method, Response, header};

use super::body::Body;
use super::plan::Plan;
use super::{ApiRequest, Target};
use crate::refusal::Refusal;
use crate::translate::{ShownBody, Upstream, transform_response, warnings};
use host_client::HostBody;

impl ApiRequest<'_> {
    /// Whether the response has no body, whatever its head says.
    pub(super) fn is_bodiless(&self) -> bool {
        self.info.method() == Method::HEAD && matches!(self.info.target(), Target::Resource(_))
    }

    /// The host's response to HEAD as the client may see it.
    ///
    /// It has no body, so it does not show whether the object belongs to the cluster, or how long it is with virtual
    /// names. So the agent reads the object from the host.
    pub(super) async fn head(&self, body: &Body, head: Response<HostBody>) -> Result<Response<ShownBody>, Refusal> {
        let (mut parts, _) = head.into_parts();
        if !parts.status.is_success() {
            warnings(&self.view(self.mapping.clone()), &mut parts.headers);
            // This is the length of a Status with host names.
            parts.headers.remove(header::CONTENT_LENGTH);
            return Ok(Response::from_parts(parts, ShownBody::none()));
        }
        let Plan { mut request, transform, mapping, not_found, .. } = self.plan(body).await?;
        *request.method_mut() = Method::GET;
        let response = self.send(request).await?.map(Upstream::Stream);
        let response = self.overlaid(&transform, response);
        let answer =
            transform_response(&self.view(mapping), transform, || not_found, response, self.answer_collector()).await?;
        Ok(answer.map(|_| ShownBody::none()))
    }
}
