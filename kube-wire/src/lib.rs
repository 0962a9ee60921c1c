//! The vocabulary of the Kubernetes HTTP API, without any I/O.
//!
//! It converts bytes and text to typed values, and back: what a request asks for, which representations a client accepts, how
//! a `metav1.Status` is encoded, where a watch event ends. Both binaries use these types, so that they interpret each request
//! in the same way.
//!
//! What is *not* here: sockets, tasks, clocks, HTTP clients and servers, and virtual clusters. Where Kubernetes is lax
//! (double slashes, encoded dots, repeated parameters), this crate refuses the request, because the result of parsing decides
//! what a caller may reach.
//!
//! Reading order:
//! - [`name`] and [`gvr`]: the nouns;
//! - [`request_info`]: method + path + query to verb, resource, namespace and name, and back to a path;
//! - [`query`] and [`selector`]: the parts of the query string;
//! - [`media`]: `Accept` and `Content-Type`;
//! - [`bearer`]: tokens in the headers;
//! - [`status`]: all refusals and their two encodings;
//! - [`watch`]: the frames of a watch;
//! - [`proto`] and [`envelope`]: the protobuf encoding and the `k8s\0` wrapper around objects.

pub mod bearer;
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
pub mod watch_frames;

pub mod go_quote;
mod percent;

pub use percent::PercentError;
pub use request_info::{RequestInfo, ResourceRequest, Target, Verb};
pub use status::Status;
