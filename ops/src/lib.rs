//! The operational parts of both binaries: configuration, logs, metrics, probes, listening and draining, certificates and
//! TLS.
//!
//! What is *not* here: anything about Kubernetes, the tunnel, or which cluster is where. A module here would fit into
//! any server; the binaries give it its contents.
//!
//! In the order in which a `main` needs them: [`config`] reads the file ([`secret`] for what must not be shown), [`log`]
//! starts logging, [`metrics`] makes the registry, [`listen`] binds, [`probes`] answers `/livez`, `/readyz` and
//! `/metrics`, [`drain`] runs every task and ends them, and [`workers`] are the threads that serve requests, which
//! [`heartbeat`] watches. Beside them: [`files`] follows files that change, [`pki`] issues certificates, [`tls`] builds every
//! rustls configuration, [`machine`] says how much memory there is, [`columns`] and [`date`] write for people.

pub mod columns;
pub mod config;
pub mod date;
pub mod drain;
pub mod files;
pub mod heartbeat;
pub mod listen;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod pki;
pub mod probes;
pub mod secret;
pub mod tls;
pub mod workers;
