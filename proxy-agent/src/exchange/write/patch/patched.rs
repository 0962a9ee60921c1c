//! Patches for the host.

use bytes::Bytes;
use http::{Method, Request};
use kube_wire::ResourceRequest;

use crate::exchange::plan::Replan;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream;
use crate::refusal::Refusal;
use host_client::{RequestBody, full};

/// Kinds whose labels say which virtual cluster an object belongs to, and that the host patches strategically. It does
/// not patch custom objects strategically (`jsonPatcher` and `smpPatcher` in apiserver's `handlers/patch.go`).
const LABELLED: [(&str, &str); 2] = [("", "namespaces"), ("rbac.authorization.k8s.io", "clusterroles")];

/// A patch for the host.
pub(crate) struct Patched {
    pub(crate) request: Request<RequestBody>,
    /// Whether it is planned again after a conflict.
    pub(crate) replan: Replan,
}

/// Whether the host patches the objects strategically, and their labels say which virtual cluster they belong to.
pub(crate) fn is_labelled(request: &ResourceRequest<'_>) -> bool {
    LABELLED.contains(&(request.group(), request.resource()))
}

/// Whether the objects are ClusterRoleBindings. They have a hidden label, too, but a directive that removes it has no other
/// effect on what the agent writes: the result of the patch gets the label again.
pub(crate) fn is_binding(request: &ResourceRequest<'_>) -> bool {
    (request.group(), request.resource()) == ("rbac.authorization.k8s.io", "clusterrolebindings")
}

pub(crate) fn sent_patch(call: &Undecided<'_>, path: &str, body: RequestBody) -> Result<Patched, Refusal> {
    let target = upstream::target(path, call.api.info.query());
    Ok(Patched {
        request: upstream::request(&call.api, Method::PATCH, &target, call.api.acts_as(), body)?,
        replan: Replan::Never,
    })
}

pub(crate) fn put_patched(call: &Undecided<'_>, body: Bytes, path: &str) -> Result<Patched, Refusal> {
    let mut query = call.api.info.query().borrowed();
    query.remove("force");
    let mut request =
        upstream::request(&call.api, Method::PUT, &upstream::target(path, &query), call.api.acts_as(), full(body))?;
    request.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(Patched { request, replan: Replan::AfterConflict })
}

/// The JSON pointer of the pod specification in a guarded kind.
pub(crate) fn pod_spec(resource: &str) -> &'static str {
    match resource {
        "pods" => "/spec",
        "podtemplates" => "/template/spec",
        "cronjobs" => "/spec/jobTemplate/spec/template/spec",
        _ => "/spec/template/spec",
    }
}
