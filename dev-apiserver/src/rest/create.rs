//! Creating objects (POST).

use http::{HeaderValue, Response, StatusCode, header};
use kube_wire::Status;

use super::decode;
use super::request::ApiRequest;
use super::shape::respond;
use crate::body::RequestBody;
use crate::kinds::Kind;
use crate::response::Body;
use crate::store::State;
use crate::write;

pub(super) async fn create(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let options = request.write_options()?;
    let manager = request.manager()?;
    let object = decode::object(request, body).await?;
    let kind = request.kind;
    let namespace = request.namespace().unwrap_or_default();
    let write =
        |state: &mut State| write::create(state, kind, namespace, object, request.writer(&manager), options.dry_run);
    let created = request.api.store.write(write)?;
    let mut response = respond(request, StatusCode::CREATED, &created)?;
    if let Some(warning) = inert(kind) {
        response.headers_mut().insert(header::WARNING, warning);
    }
    Ok(response)
}

/// A warning (RFC 7234 section 5.5, as Kubernetes uses it) for kinds that no controller acts on.
fn inert(kind: &Kind) -> Option<HeaderValue> {
    let is_inert = matches!(
        kind.resource,
        "cronjobs"
            | "horizontalpodautoscalers"
            | "ingresses"
            | "limitranges"
            | "networkpolicies"
            | "persistentvolumeclaims"
            | "persistentvolumes"
            | "resourcequotas"
    );
    let text = format!("299 - \"dev-apiserver stores a {} and does nothing with it\"", kind.kind);
    is_inert.then(|| HeaderValue::from_str(&text).ok()).flatten()
}
