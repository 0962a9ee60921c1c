//! The vocabulary of the Kubernetes HTTP API, without any I/O.
//!
//! Bytes and text in, typed words out, and back: what a request asks for, which representations a client takes, what a
//! `metav1.Status` looks like on the wire, where one watch event ends. The two binaries share these words, so that what
//! one of them decides is what the other one does.
//!
//! What is *not* here: sockets, tasks, clocks, HTTP clients and servers; and no opinion about virtual clusters. Where
//! Kubernetes is lax (double slashes, encoded dots, repeated parameters) this crate refuses instead, because the result
//! of parsing decides what a caller may reach.
//!
//! Reading order:
//! - [`name`] and [`gvr`]: the nouns;
//! - [`request_info`]: method + path + query to verb, resource, namespace and name, and back to a path;
//! - [`query`] and [`selector`]: what is inside the query string;
//! - [`media`]: `Accept` and `Content-Type`;
//! - [`status`]: every refusal and its two wire forms;
//! - [`watch`]: where frames end;
//! - [`proto`] and [`envelope`]: the protobuf wire form and the `k8s\0` wrapper around objects.

pub mod envelope;
pub mod gvr;
pub mod media;
pub mod name;
pub mod proto;
pub mod query;
pub mod request_info;
pub mod selector;
pub mod status;
pub mod watch;

pub mod go_quote;
mod percent;

pub use percent::PercentError;
pub use request_info::{RequestInfo, ResourceRequest, Target, Verb};
pub use status::Status;
