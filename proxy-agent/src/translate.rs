//! Maps the bodies of responses: the engine of `rewrite` inside an [`http_body::Body`].

mod binding;
mod bookmarks;
mod echo;
mod labelled;
mod overlaid;
mod proxied;
mod response;
mod review;
pub(crate) mod whole;

pub(crate) use binding::as_cluster_binding;
pub(crate) use bookmarks::beginning;
pub(crate) use echo::status;
pub(crate) use overlaid::{Overlaid, Read};
pub(crate) use proxied::Proxied;
pub(crate) use response::{
    Arrivals, ListNamespaces, MappedFrames, ResponseTransform, ShownBody, Upstream, encoding, transform_response,
    warnings,
};
pub(crate) use review::{ReviewAnswer, Ruling};
pub(crate) use whole::Collector;

/// The maximum length of a request body, in bytes (`MaxRequestBodyBytes` in apiserver's `server/config.go`).
pub(crate) const MAX_REQUEST: usize = 3 * 1024 * 1024;

/// The maximum length of the rest of a request body that is read and discarded, in bytes. A client that is still
/// sending when the response arrives may never read it: over HTTP/1.1, the connection must be closed then (RFC 9112,
/// section 9.6).
pub(crate) const MAX_FORGOTTEN: usize = 16 * 1024 * 1024;
