//! The client of a host's API server.
//!
//! All upstream requests use [`Host`]. It has the addresses and the agent's own credentials, keeps HTTP/2 connections
//! with free streams, and repeats requests that were certainly not processed. What is *not* here: authentication and
//! authorisation of callers, rewriting, and Kubernetes' resources (except in [`api`], which the agent's own loops use).
//!
//! Reading order:
//! - [`Host::send`], then `exchange` (one request on one connection) and `retry` (whether to repeat it);
//! - `servers` (chooses an address), `health` and `readiness` (whether an address is usable), `pool` (chooses a
//!   connection), `connection`, `dial`;
//! - `switch` (upgrades), `head` (the head that is sent), [`RequestBody`], [`HostBody`], [`HostError`];
//! - `upstream` (addresses and credentials, which can change) and `follow` (applies their changes), with `in_cluster` and the
//!   crate `kubeconfig`;
//! - [`spacing`] (spaces out requests that cost the host much);
//! - `core` (what all of them share), `upkeep` and `limits`; `in_memory` (a host in memory).

pub mod api;
pub mod collect;
pub mod config;
mod connection;
mod core;
mod counters;
mod dial;
mod error;
mod exchange;
mod follow;
mod head;
mod health;
mod host;
mod host_body;
mod in_cluster;
pub mod in_memory;
mod limits;
mod pool;
mod readiness;
mod request_body;
mod retry;
mod servers;
pub mod spacing;
mod switch;
mod upkeep;
mod upload;
mod upstream;

use std::time::Duration;

pub use counters::{ServerStatistics, Statistics};
pub use error::{ConnectError, ConnectReason, Fault, HostError, InvalidRequest, OpenError, Stage, Unreachable};
pub use host::Host;
pub use host_body::{HostBody, HostBodyError};
pub use in_cluster::InClusterError;
pub use kubeconfig::{Address, AddressError, KubeconfigError, TokenError};
pub use request_body::{BoxError, RequestBody, empty, full, stream};
pub use switch::{Switched, UpgradedStream};

/// The time limit of kube-apiserver for a request that is not long-running (`--request-timeout`).
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for a request in the queues of API Priority and Fairness: a quarter of [`REQUEST_TIMEOUT`]
/// (`DefaultBuildHandlerChain` in apiserver's `pkg/server/config.go`).
pub const QUEUE_WAIT: Duration = Duration::from_secs(15);

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
