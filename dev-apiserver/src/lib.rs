//! A small Kubernetes API server in memory: for trying Atoll in five minutes and for fast tests. **Never for
//! production**: it keeps nothing, replicates nothing, limits little, runs no containers and answers in JSON only.
//!
//! What it does it does as kube-apiserver does it, so that kubectl and the proxy-agent work with it unmodified:
//! discovery, CRUD with versions and conflicts, lists in pages, watches, patches, Tables, namespaces that end, RBAC that
//! is enforced, impersonation, reviews and tokens. Controllers, a scheduler and make-believe nodes bring workloads to
//! `Running`. What it does not do it refuses with a `Status`: custom resources, webhooks, admission policies,
//! port-forward, SPDY, CBOR. `exec` of a command that it would have to run ends with exit code 126.
//!
//! It knows nothing of virtual clusters: to it the agent is a client like any other.
//!
//! Reading order: [`DevApiserver`], `serve` (the path of a request), `access` (who may), `rest` (what is done), `store`
//! (where it is), `kinds` (what there is), `controllers` (what happens by itself).

mod access;
mod answer;
mod api;
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
mod rest;
mod seed;
mod serve;
mod server;
mod store;
mod table;
mod websocket;
mod write;

pub use server::{DevApiserver, Options, Unlistened};

/// What a person who starts one has to know.
pub const WARNING: &str =
    "dev-apiserver is a toy: everything is in memory and nothing is safe. Never use it in production.";
