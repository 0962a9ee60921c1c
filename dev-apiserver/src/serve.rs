//! The path of a request: what is asked, who asks, as whom, may they, do it.

mod body;
mod paths;

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
use kube_wire::media::{Accept, Form};
use kube_wire::{RequestInfo, Status, Target};
use ops::drain::Tasks;
use ops::tls::ClientCa;
use rustls_pki_types::CertificateDer;
use tracing::debug;

use crate::access::rbac::{self, RequestAttributes};
use crate::access::tokens::Tokens;
use crate::access::{User, authn, impersonate};
use crate::answer::{self, Body};
use crate::rest;
use crate::store::Store;
pub(crate) use body::{Sent, json_only, parse_json, parse_yaml};

/// What requests are served from.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<Store>,
    pub(crate) tokens: Tokens,
    pub(crate) tasks: Tasks,
    /// What `kube-root-ca.crt` holds.
    pub(crate) serving_ca: String,
    /// What legacy discovery says.
    pub(crate) address: SocketAddr,
    client_ca: ClientCa,
}

/// A request, once it is known who asks for what.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) user: User,
    pub(crate) info: &'a RequestInfo<'a>,
    pub(crate) headers: &'a HeaderMap,
}

// === impl Api ===

impl Api {
    pub(crate) fn new(client_ca: ClientCa, serving_ca: String, address: SocketAddr, tasks: Tasks) -> Self {
        let store = Arc::new(Store::new());
        Self { tokens: Tokens::new(Arc::clone(&store)), store, tasks, serving_ca, address, client_ca }
    }

    /// Serves one request.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        chain: &[CertificateDer<'static>],
    ) -> Response<Body> {
        match self.exchange(request, chain).await {
            Ok(response) => response,
            Err(status) => {
                debug!(%status, "refused");
                answer::refuse(&status)
            }
        }
    }

    async fn exchange(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        chain: &[CertificateDer<'static>],
    ) -> Result<Response<Body>, Status> {
        let upgrade = request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let (mut head, body) = request.into_parts();
        let info = RequestInfo::parse(&head.method, head.uri.path(), head.uri.query());
        let info = info.map_err(|error| Status::from(&error))?;
        let caller = authn::identify(&self.client_ca, &self.tokens, chain, &mut head.headers)?;
        let user = self.store.read(|state| {
            let user = impersonate::acting_as(state, caller, &head.headers)?;
            let attributes = match info.target() {
                Target::Resource(request) => RequestAttributes::of(request),
                Target::NonResource(request) => RequestAttributes::of_path(request),
            };
            if rbac::allows(state, &user, &attributes) { Ok(user) } else { Err(attributes.forbidden(&user)) }
        })?;
        let call = Call { api: self, user, info: &info, headers: &head.headers };
        match info.target() {
            Target::NonResource(request) => call.path(request),
            // A stored object has no head without it (apiserver's installer registers no HEAD).
            Target::Resource(_) if head.method == Method::HEAD => Err(rest::not_allowed()),
            Target::Resource(request) => rest::serve(&call, request, Sent::new(body, upgrade)).await,
        }
    }
}

// === impl Call ===

impl Call<'_> {
    /// In which shape the client wants to see objects, the best first; never none.
    pub(crate) fn forms(&self) -> Result<Vec<Form>, Status> {
        let values = self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accept = Accept::parse(values);
        let accepted = accept.json_only().map_err(Status::not_acceptable)?;
        Ok(accepted.forms().to_vec())
    }

    /// A header's text.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
