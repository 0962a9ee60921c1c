//! The path of a request: parse, authenticate, impersonate, authorize, execute.

mod non_resource;

use std::sync::Arc;

use http::{Method, Request, Response, header};
use hyper::body::Incoming;
use kube_wire::{RequestInfo, Status, Target};
use rustls_pki_types::CertificateDer;
use tracing::debug;

use crate::api::Api;
use crate::auth::rbac::{self, RequestAttributes};
use crate::auth::{authn, impersonate};
use crate::body::RequestBody;
use crate::kinds;
use crate::response::{self, Body};
use crate::rest::{self, ApiRequest};

/// Responds to a request. `chain` is the client's certificate chain, which is empty if the client has no certificate.
pub(crate) async fn respond(
    api: &Arc<Api>,
    request: Request<Incoming>,
    chain: &[CertificateDer<'static>],
) -> Response<Body> {
    match exchange(api, request, chain).await {
        Ok(response) => response,
        Err(status) => {
            debug!(%status, "request refused");
            response::refuse(&status)
        }
    }
}

async fn exchange(
    api: &Arc<Api>,
    mut request: Request<Incoming>,
    chain: &[CertificateDer<'static>],
) -> Result<Response<Body>, Status> {
    let upgrade = request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (mut head, body) = request.into_parts();
    let info = RequestInfo::parse(&head.method, head.uri.path(), head.uri.query());
    let info = info.map_err(|error| Status::from(&error))?;
    let caller = authn::identify(&api.client_ca, &api.tokens, chain, &mut head.headers)?;
    let user = api.store.read(|state| {
        let user = impersonate::acting_as(state, caller, &head.headers)?;
        let attributes = match info.target() {
            Target::Resource(request) => RequestAttributes::of(request),
            Target::NonResource(request) => RequestAttributes::of_path(request),
        };
        if rbac::allows(state, &user, &attributes) { Ok(user) } else { Err(attributes.forbidden(&user)) }
    })?;
    let resource = match info.target() {
        Target::NonResource(request) => return non_resource::respond(request, &head.headers, api.address),
        // apiserver's installer registers no HEAD for resources.
        Target::Resource(_) if head.method == Method::HEAD => return Err(Status::method_not_allowed_here()),
        Target::Resource(request) => request,
    };
    if !kinds::groups().any(|(group, _)| group == resource.group()) {
        return Ok(response::page_not_found());
    }
    let kind = kinds::find(resource.group(), resource.version(), resource.resource());
    let kind = kind.ok_or_else(Status::path_not_found)?;
    let request = ApiRequest { api, user: &user, kind, resource, query: info.query(), headers: &head.headers };
    rest::serve(&request, RequestBody::new(body, upgrade)).await
}
