//! Traces of requests to virtual clusters: which half, and the host, took how long.
//!
//! ```text
//! trace of a client, or a new one
//! └─ GET /api/v1/namespaces/{namespace}/pods    proxy-server: from the caller's identity to the end of the response
//!    └─ tunnel                                  until the head of the agent's response
//!       └─ GET /api/v1/namespaces/{namespace}/pods    proxy-agent: from the head of the request to the end of the response
//!          ├─ authenticate, authorise
//!          └─ host                              each request to the host, until the head of its response
//!             └─ spans of kube-apiserver
//! ```
//!
//! The model of spans, the sampling and W3C Trace Context are those of the crate `opentelemetry_sdk`. This crate decides
//! which requests begin a trace ([`Traces`]), what a span says ([`Span`]), and exports spans ([`Exporter`]).
//!
//! What is *not* here: what a phase of a request is. Both halves say where a span begins and ends.
//!
//! **Invariant:** a span contains no name of an object, no user, no query, and nothing of a header or a body. **Invariant:**
//! a collector that does not respond delays no request. Without `tracing` in the configuration, a request allocates
//! nothing here.

pub mod config;

mod collector;
mod exporter;
mod queue;
mod route;
mod span;
mod traceparent;
mod traces;

pub use collector::{OpenError, SendError};
pub use exporter::Exporter;
pub use span::{Parent, Phase, Span};
pub use traces::{Service, Traces, Trust};
