//! The operational parts of both binaries: configuration, logs, metrics, probes, listening and draining, certificates and
//! TLS.
//!
//! What is *not* here: anything about Kubernetes, the tunnel or clusters. Every module here could be used in any
//! server.
//!
//! In the order in which a `main` needs them: [`config`] reads the file ([`secret`] for what must not be shown), [`log`]
//! starts logging, [`metrics`] creates the registry, [`listen`] binds, [`probes`] answers `/livez`, `/readyz` and
//! `/metrics`, [`drain`] runs every task and ends them, and [`workers`] are the threads that serve requests, which
//! [`heartbeat`] watches. Beside them: [`files`] reloads files that change, [`pki`] issues certificates, [`tls`] builds
//! every rustls configuration, [`expiry`] has the metrics of certificates, [`machine`] reports how much memory there is,
//! [`backoff`] says how long to wait after a failure, and [`columns`], [`report`], [`html`], [`date`] and [`used`] format text for people.

pub mod backoff;
pub mod columns;
pub mod config;
pub mod date;
pub mod drain;
pub mod expiry;
pub mod files;
pub mod heartbeat;
pub mod html;
pub mod listen;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod pki;
pub mod probes;
pub mod report;
pub mod secret;
pub mod tls;
pub mod used;
pub mod workers;
