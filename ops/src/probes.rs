//! The HTTP/1.1 pages for probes and operators: `/livez`, `/readyz`, `/metrics`, an index, and pages for debugging.
//!
//! [`Checks`] are named checks, such as "does the tunnel answer". [`Pages`] is the list of pages of one listener, and
//! [`serve`] serves it. A binary has three lists ([`Listeners`]): one for the probes port, which anybody may reach, one for
//! the operator's port on loopback, and one for Prometheus.
//!
//! Responses to probes look like those of kube-apiserver (`k8s.io/apiserver/pkg/server/healthz`), with two differences.
//! A failure is 503 and not 500, and the response contains the reason, which clients of the endpoint may know.
//!
//! What is *not* here: access control. All requests are `GET` or `HEAD` and change nothing. Requests with bodies, other
//! methods and HTTP/2 are not supported.

mod check;
mod listeners;
mod page_response;
mod pages;
mod serve;

pub use check::Checks;
pub use listeners::{Listeners, ListenersError};
pub use page_response::{PageResponse, Query};
pub use pages::Pages;
pub use serve::{MAX_CONNECTIONS, serve};
