//! Applies a plan to bodies: the engine of `rewrite` inside an [`http_body::Body`].

mod arrivals;
mod echo;
mod labelled;
mod response;
mod whole;

pub(crate) use arrivals::Arrivals;
pub(crate) use echo::status;
pub(crate) use response::{Show, ShownBody, Upstream, show, warnings};
pub(crate) use whole::{TooLarge, collect};

/// The largest request body that an API server takes, in bytes (`MaxRequestBodyBytes` in apiserver's
/// `server/config.go`).
pub(crate) const MAX_REQUEST: usize = 3 * 1024 * 1024;

/// The largest answer that is looked at as a whole, in bytes. Lists and watches are not: they stream.
pub(crate) const MAX_OBJECT: usize = 16 * 1024 * 1024;
