//! Applies a plan to bodies: the engine of `rewrite` inside an [`http_body::Body`].

mod arrivals;
mod binding;
mod bookmarks;
mod echo;
mod labelled;
mod overlaid;
mod proxied;
mod response;
mod review;
pub(crate) mod whole;

pub(crate) use arrivals::Arrivals;
pub(crate) use binding::as_cluster_binding;
pub(crate) use bookmarks::beginning;
pub(crate) use echo::status;
pub(crate) use overlaid::{Overlaid, Read};
pub(crate) use proxied::Proxied;
pub(crate) use response::{Show, ShownBody, Upstream, encoding, show, warnings};
pub(crate) use review::{Answer, Ruling};
pub(crate) use whole::{CollectError, Collector, collect, collect_charged, drain, exhausted};

/// The largest request body that an API server takes, in bytes (`MaxRequestBodyBytes` in apiserver's
/// `server/config.go`).
pub(crate) const MAX_REQUEST: usize = 3 * 1024 * 1024;

/// How much more of a request body is read and forgotten, in bytes. A client that is still sending when the answer comes
/// may never look at it: over HTTP/1.1 the connection has to be closed on it (RFC 9112 section 9.6).
pub(crate) const MAX_FORGOTTEN: usize = 16 * 1024 * 1024;

/// The largest answer that is looked at as a whole, in bytes. Lists and watches are not: they stream.
pub(crate) const MAX_OBJECT: usize = 16 * 1024 * 1024;
