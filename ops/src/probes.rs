//! What probes and operators ask over HTTP/1.1: `/livez`, `/readyz`, `/metrics`, an index, and pages for debugging.
//!
//! [`Checks`] are named questions such as "does the tunnel answer"; [`Pages`] is the list of what one listener offers;
//! [`serve`] answers. A binary makes two lists, one for the probes port, which anybody may reach, and one for the
//! operator's port on the loopback.
//!
//! Answers to probes look like those of kube-apiserver (`k8s.io/apiserver/pkg/server/healthz`), except that failing is
//! 503 and not 500, and that the reason is told: it holds nothing that a client of the endpoint may not know.
//!
//! What is *not* here: who may ask. Everything is `GET` or `HEAD` and changes nothing; requests with bodies, other
//! methods and HTTP/2 are for the real listeners.

mod answer;
mod check;
mod pages;
mod serve;

pub use answer::{Answer, Query};
pub use check::Checks;
pub use pages::Pages;
pub use serve::{MAX_CONNECTIONS, serve};
