//! The engine that maps Kubernetes bodies between a host cluster and its virtual clusters.
//!
//! Bodies are scanned once and spliced: the output consists of slices of the input and the few strings that change. So every
//! byte that is not a name stays as the host or the client wrote it, and one item of a list bounds the memory.
//!
//! What is *not* here: sockets, HTTP, clocks, authorisation, and the decision which object may be requested. The caller
//! passes the resource of a body and the filter; this crate only reads and writes bytes.
//!
//! Reading order: [`name`] (the two kinds of names), [`mapping`] (how one becomes the other), [`json`] (scan and splice),
//! [`program`] and [`schema`] (the positions of names in a body), [`protobuf`] (both for the other encoding), [`guard`] (what
//! is added to pods and hidden from clients), [`pod_security`] (the level that the host enforces), [`view`] (responses, host
//! to virtual), [`request`] (virtual to host), [`json_patch`] (patches that are applied here), [`yaml`] (conversion to JSON), [`facts`]
//! (what decides who gets an object).

mod credential;
mod descriptor;
pub mod facts;
pub mod field_manager;
pub mod guard;
pub mod json;
pub mod json_patch;
pub mod mapping;
pub mod name;
pub mod node_ports;
pub mod parked;
pub mod pod_security;
pub mod pointer;
pub mod program;
pub mod protobuf;
pub mod request;
mod review;
mod same;
pub mod sample;
pub mod schema;
pub mod sink;
pub mod view;
pub mod yaml;

pub use guard::Guard;
pub use mapping::{Index, Mapping};
pub use name::{ClusterName, HostNamespace, VirtualNamespace};
pub use program::Program;
pub use protobuf::ProtoProgram;

pub use request::{Refusal, Request};
pub use same::Same;
pub use sink::Sink;
pub use view::View;
