//! A Kubernetes API server in memory, for trying Atoll and for fast tests. **Never use it in production**: it persists
//! nothing, has few limits, runs no containers and responds in JSON only.
//!
//! kubectl and the proxy-agent work with it unmodified. It has discovery, resource versions and conflicts, paginated
//! lists, watches, patches, Tables, deletion of namespaces, RBAC, impersonation, reviews and tokens. Controllers, a
//! scheduler and simulated nodes bring workloads to `Running`. It refuses what it does not support with a `Status`: custom
//! resources, webhooks, admission policies, port-forward, SPDY and CBOR. `exec` answers a few commands itself; all others
//! end with exit code 126.
//!
//! It does not know virtual clusters. The agent is a client like any other.
//!
//! Reading order: [`DevApiserver`], `serve` (the path of a request), `auth` (authentication and authorization), `rest`
//! (the verbs), `write` (the rules of writes), `store` (the objects), `kinds` (the resources), `controllers`.

mod api;
mod auth;
mod body;
mod controllers;
mod defaults;
mod discovery;
mod headers;
mod kinds;
mod object;
mod openapi;
mod patch;
mod protobuf;
mod response;
mod rest;
mod seed;
mod serve;
mod server;
mod store;
mod table;
mod websocket;
mod write;

pub use server::{DevApiserver, Options, Unlistened};

/// The warning for whoever starts this server.
pub const WARNING: &str = "dev-apiserver keeps everything in memory and is not secure. Never use it in production.";
