//! What a client requests of a cluster.

use http::{HeaderValue, Method, Request, header};
use protocol::detached;
use protocol::digest::Digest;
use protocol::prefetch::Prefetch;

/// The maximum length of a target, and of a media type.
const MAX_KEY: usize = 512;

/// What a client requests of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    target: Box<str>,
    accept: Option<HeaderValue>,
}

// === impl Key ===

impl Key {
    /// That of a request for a document. `None` for other requests.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        let (target, headers) = (request.uri().path_and_query()?.as_str(), request.headers());
        let is_document = request.method() == Method::GET && is_document(request.uri().path());
        let is_conditional = headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::RANGE);
        let mut accepts = headers.get_all(header::ACCEPT).iter();
        let accept = accepts.next();
        let is_short = target.len() <= MAX_KEY && accept.is_none_or(|accept| accept.len() <= MAX_KEY);
        (is_document && !is_conditional && accepts.next().is_none() && is_short)
            .then(|| Self { target: target.into(), accept: accept.map(detached::value) })
    }

    /// The document for an agent, if its response has this digest ([`protocol::prefetch`]). `None` if it cannot be prefetched.
    pub(crate) fn prefetch(&self, digest: Digest) -> Option<Prefetch> {
        let prefetch = Prefetch { target: self.target.parse().ok()?, accept: self.accept.clone(), digest };
        prefetch.is_valid().then_some(prefetch)
    }

    /// Whether it can be prefetched.
    pub(crate) fn is_prefetchable(&self) -> bool {
        self.prefetch(Digest::of(b"")).is_some()
    }

    /// Its length, for the budget.
    pub(super) fn size(&self) -> usize {
        self.target.len() + self.accept.as_ref().map_or(0, HeaderValue::len)
    }
}

/// Whether a path is one of `/api`, `/api/v1`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`, `/openapi/...` and `/version`.
fn is_document(path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    match segments.next() {
        Some("api") => segments.count() <= 1,
        Some("apis") => segments.count() <= 2,
        Some("openapi") => true,
        Some("version") => segments.next().is_none(),
        _ => false,
    }
}
