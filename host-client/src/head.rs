//! The head of the request that an API server gets.
//!
//! The authority and the credentials are those of the agent. Hop-by-hop headers of the client (RFC 9110 section 7.6.1)
//! are removed.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version, request};

use super::error::InvalidRequest;
use super::request_body::Kind;
use kubeconfig::Address;
use kubeconfig::Bearer;

/// The head of a request, before an API server is chosen.
#[derive(Clone, Debug)]
pub(super) struct Head {
    method: Method,
    path: PathAndQuery,
    headers: HeaderMap,
}

// === impl Head ===

impl Head {
    /// The head of a request without an upgrade.
    pub(super) fn plain(parts: request::Parts, body: &Kind) -> Result<Self, InvalidRequest> {
        let mut head = Self::new(parts)?;
        match body {
            Kind::Full(bytes) => {
                head.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            }
            // The end of the stream implies it. The length in the caller's request may be that of another body.
            Kind::Empty => {
                head.headers.remove(CONTENT_LENGTH);
            }
            Kind::Stream(_) | Kind::Spent => {}
        }
        Ok(head)
    }

    /// The head of a request to switch to one of the protocols in its `Upgrade` header.
    pub(super) fn upgrade(parts: request::Parts) -> Result<Self, InvalidRequest> {
        let protocols: Vec<_> = parts.headers.get_all(UPGRADE).iter().cloned().collect();
        let mut head = Self::new(parts)?;
        for protocol in protocols {
            head.headers.append(UPGRADE, protocol);
        }
        head.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        Ok(head)
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    pub(super) fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// The request for one attempt over HTTP/2.
    pub(super) fn http2(&self, address: &Address, bearer: Option<&Bearer>) -> Result<Request<()>, InvalidRequest> {
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(address.authority().clone())
            .path_and_query(self.full_path(address)?)
            .build()
            .map_err(|_| InvalidRequest::path(address.prefix(), &self.path))?;
        Ok(self.request(uri, Version::HTTP_2, bearer))
    }

    /// The request for one attempt over HTTP/1.1.
    pub(super) fn http1(&self, address: &Address, bearer: Option<&Bearer>) -> Result<Request<()>, InvalidRequest> {
        let uri = Uri::from(self.full_path(address)?);
        let mut request = self.request(uri, Version::HTTP_11, bearer);
        let host = HeaderValue::from_str(address.authority().as_str());
        request.headers_mut().insert(HOST, host.expect("an authority is visible ASCII"));
        Ok(request)
    }

    fn new(parts: request::Parts) -> Result<Self, InvalidRequest> {
        let uri = parts.uri.into_parts();
        let path = uri.path_and_query.filter(|path| path.path().starts_with('/'));
        let path = path.ok_or(InvalidRequest::Target)?;
        Ok(Self { method: parts.method, path, headers: forwarded(parts.headers) })
    }

    fn request(&self, uri: Uri, version: Version, bearer: Option<&Bearer>) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.version_mut() = version;
        *request.headers_mut() = self.headers.clone();
        if let Some(bearer) = bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.header().clone());
        }
        request
    }

    fn full_path(&self, address: &Address) -> Result<PathAndQuery, InvalidRequest> {
        if address.prefix().is_empty() {
            return Ok(self.path.clone());
        }
        let full = format!("{}{}", address.prefix(), self.path);
        PathAndQuery::try_from(full).map_err(|_| InvalidRequest::path(address.prefix(), &self.path))
    }
}

/// Whether it is a hop-by-hop header, apart from those that `Connection` names.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(*name, AUTHORIZATION | PROXY_AUTHORIZATION | CONNECTION | HOST | TRANSFER_ENCODING | UPGRADE)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Removes hop-by-hop headers.
fn forwarded(mut headers: HeaderMap) -> HeaderMap {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    // Most heads have none of these, and to look at each name is cheaper than to look for those that are not there.
    let gone: Vec<HeaderName> = named.chain(headers.keys().filter(|name| is_hop_by_hop(name)).cloned()).collect();
    for name in gone {
        headers.remove(name);
    }
    // The only value that HTTP/2 allows (RFC 9113 section 8.2.2).
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
    headers
}

#[cfg(test)]
mod tests;
