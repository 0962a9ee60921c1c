//! HEAD: the head of what GET answers, where the host knows the method at all.
//!
//! The resources of kube-apiserver itself answer 405, since go-restful routes by method. Custom resources are served by
//! verb (`crdHandler` in apiextensions-apiserver), and to `RequestInfo` HEAD is a `get`: there it is answered.

use http::{Method, Response, header};

use super::body::Body;
use super::plan::Plan;
use super::{Asked, Target};
use crate::refusal::Refusal;
use crate::translate::{ShownBody, Upstream, show, warnings};
use host_client::HostBody;

impl Asked<'_> {
    /// Whether the answer has no body, whatever its head says.
    pub(super) fn is_bodiless(&self) -> bool {
        self.info.method() == Method::HEAD && matches!(self.info.target(), Target::Resource(_))
    }

    /// The host's answer to a HEAD as the client may see it.
    ///
    /// There is nothing in it to look at, so it does not say whether the object is the cluster's, nor how long it is in
    /// virtual names. If there is one, the host is asked for it.
    pub(super) async fn head(&self, body: &Body, head: Response<HostBody>) -> Result<Response<ShownBody>, Refusal> {
        let (mut parts, _) = head.into_parts();
        if !parts.status.is_success() {
            warnings(&self.view(self.mapping.clone()), &mut parts.headers);
            // It counts the bytes of a Status in host names.
            parts.headers.remove(header::CONTENT_LENGTH);
            return Ok(Response::from_parts(parts, ShownBody::none()));
        }
        let Plan { mut request, show: shown, mapping, not_found, .. } = self.plan(body).await?;
        *request.method_mut() = Method::GET;
        let response = self.send(request).await?.map(Upstream::Stream);
        let response = self.overlaid(&shown, response);
        let answer = show(&self.view(mapping), shown, || not_found, response, self.answer_collector()).await?;
        Ok(answer.map(|_| ShownBody::none()))
    }
}
